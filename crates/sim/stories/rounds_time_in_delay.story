# If the time for all rounds ends between two rounds, no further round starts.
---
workflow: { id: rounds, name: Rounds }
config: { timeout: none }
stages:
  - { id: b, type: task, task: b, rounds: { max: 10, time: 1m, delay: 2m } }
---
start
continue /b 1
wait 2m
expect jobs
expect run failed timeout
