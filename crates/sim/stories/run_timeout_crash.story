# The time while nobody drove the run does not count; what was used up to when it was last heard of does.
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
expect jobs /a (told to stop)
stopped /a
expect run failed timeout
