# The timeout of an attempt starts again with each delivery.
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
expect jobs /a (aborted)
stopped /a
expect run failed timeout
