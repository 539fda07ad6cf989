# The time without an owner does not count toward the timeout; the time until the last event does.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
---
start
wait 40m
note /a k 1
crash
wait 19m
expect jobs /a
wait 1m
expect jobs /a (aborted)
stopped /a
expect run failed timeout
