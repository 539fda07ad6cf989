# A dormant failure handler cannot be canceled, nor can a gate that has sent steps back: both are refused and change
# nothing.
---
workflow: { id: dormant, name: Dormant }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: task, task: t, error_policy: { on_failure: { goto: h } } }
  - { id: b, type: task, task: t }
  - { id: ask, type: gate, depends_on: [b], gate: { timeout: none, on_reject: { back_to: b, max: 1 } } }
  - { id: c, depends_on: [ask], type: task, task: t }
  - { id: h, type: task, task: t }
---
start
refused cancel /h
done /a {}
done /b {}
reject /ask "no" by dana
refused cancel /ask
expect jobs /b#2
done /b#2 {}
approve /ask#2 by dana
expect jobs /c
done /c {}
expect run done
