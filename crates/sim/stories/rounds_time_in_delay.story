# The time of all rounds is up between two rounds: no further round is started. (The documents are silent; the natural rule.)
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
