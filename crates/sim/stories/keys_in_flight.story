# A step whose key belongs to a running step waits for it and uses its result; if that one does not succeed, the
# first waiting step does the work itself. The id of the step and its task are not part of the key.
---
workflow: { id: keys, name: Keys }
error_policy: { on_stage_failure: continue, default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: task, task: one, idempotency: { key: "k" } }
  - { id: b, type: task, task: two, idempotency: { key: "k" } }
  - { id: c, type: task, task: two, idempotency: { key: "k" } }
  - { id: d, type: task, task: two, idempotency: { key: "other" } }
---
start
expect jobs /a /d
expect /b joined
crash
expect /b joined
fail /a error
expect jobs /b /d
expect /c joined
done /b {"n":1}
expect /c done {"n":1}
expect attempts /c 0
done /d {}
expect run done
expect failures true
