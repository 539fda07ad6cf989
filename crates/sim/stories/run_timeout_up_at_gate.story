# A gate suspends the timeout of the run only while time is left: a run that reaches a gate in its last instant is
# over.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
  - { id: ask, depends_on: [a], type: gate, gate: { timeout: none } }
---
start
late 1h
done /a {}
expect /ask asking
tick
expect /ask cancelled
expect run failed timeout
