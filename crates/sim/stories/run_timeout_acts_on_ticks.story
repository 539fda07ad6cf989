# A run that has timed out ends with the next tick, not with another input, and not while it is paused.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
  - { id: b, depends_on: [a], type: task, task: b, error_policy: { timeout: none } }
---
start
late 1h
done /a {}
expect jobs /b
pause
tick
expect jobs /b
resume
expect jobs /b
tick
expect jobs /b (aborted)
stopped /b
expect run failed timeout
