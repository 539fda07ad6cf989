# The time of an attempt starts anew with each delivery: what was lost did not use it up.
---
workflow: { id: times, name: Times }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: 1m, retry: { max_attempts: 1 } } }
---
start
wait 50s
crash
wait 50s
expect jobs /a
wait 10s
expect jobs /a (told to stop)
stopped /a
expect run failed timeout
