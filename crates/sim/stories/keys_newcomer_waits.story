# A step that has waited for a key comes before a new one, even if the new one is first in the file.
---
workflow: { id: keys, name: Keys }
error_policy: { on_stage_failure: continue, default_retry: { max_attempts: 1 } }
stages:
  - { id: before, type: task, task: t }
  - { id: newcomer, depends_on: [before], type: task, task: t, idempotency: { key: "k" } }
  - { id: holder, type: task, task: t, idempotency: { key: "k" } }
  - { id: waiter, type: task, task: t, idempotency: { key: "k" } }
---
start
expect jobs /before /holder
expect /waiter joined
pause
fail /holder error
done /before {}
resume
expect jobs /waiter
expect /newcomer joined
done /waiter {"n":1}
expect /newcomer done {"n":1}
expect run done
