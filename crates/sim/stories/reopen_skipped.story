# Steps skipped or canceled because of the failure are reopened as well; steps skipped by a condition stay skipped.
---
workflow: { id: again, name: Again }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: task, task: t, error_policy: { on_failure: skip_dependents } }
  - { id: b, depends_on: [a], type: task, task: t }
  - { id: c, condition: "false", type: task, task: t }
  - { id: d, type: gate, gate: { timeout: none } }
---
start
fail /a error
expect /b skipped dependency_failed a
approve /d
expect run failed error
reopen
expect jobs /a
expect /c skipped condition_false
expect /d done
done /a {}
expect jobs /b
done /b {}
expect run done
