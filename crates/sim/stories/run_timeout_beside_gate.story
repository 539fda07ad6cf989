# D10: the clock of the run goes on while anything but a gate is at work, even if a gate waits too.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
  - { id: ask, type: gate, gate: { timeout: none } }
---
start
wait 1h
expect jobs /a (told to stop)
expect /ask cancelled
wait 10s
expect abandoned /a
expect run failed timeout
