# The timeout of the run counts while anything other than a gate is open, even if a gate waits, too.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
  - { id: ask, type: gate, gate: { timeout: none } }
---
start
wait 1h
expect jobs /a (aborted)
expect /ask cancelled
wait 10s
expect abandoned /a
expect run failed timeout
