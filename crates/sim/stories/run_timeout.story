# A run that times out ends by itself: all running steps are aborted, and the run fails with timeout. Time at gates
# and in a pause does not count.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: none } }
  - { id: ask, depends_on: [a], type: gate, gate: { timeout: none } }
  - { id: b, depends_on: [ask], type: task, task: b, error_policy: { timeout: none } }
  - { id: c, depends_on: [b], type: task, task: c }
---
start
wait 20m
done /a {}
wait 30d
approve /ask
expect jobs /b
pause
wait 5h
resume
wait 39m
expect jobs /b
wait 1m
expect jobs /b (aborted)
expect /c cancelled
done /b {}
expect run failed timeout
