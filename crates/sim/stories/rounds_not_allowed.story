# A continue of a task without rounds is a failure of class contract_violation.
---
workflow: { id: rounds, name: Rounds }
error_policy: { default_retry: { max_attempts: 1 } }
stages: [{ id: a, type: task, task: a }]
---
start
continue /a 1
expect run failed contract_violation
