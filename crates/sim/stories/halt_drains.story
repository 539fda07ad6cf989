# A failure halts: nothing new starts, running steps finish, the rest is canceled, and the run has failed.
---
workflow: { id: halts, name: Halts }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: bad, type: task, task: bad }
  - { id: good, type: task, task: good }
  - { id: after-bad, depends_on: [bad], type: task, task: x }
  - { id: after-good, depends_on: [good], type: task, task: y }
  - { id: ask, type: gate, gate: { timeout: 1h } }
  - { id: nap, type: wait, wait: { for: 1h } }
---
start
expect /ask asking
expect /nap waiting
fail /bad error "no way"
expect jobs /good
expect run running
expect /ask cancelled
expect /nap cancelled
expect /after-good cancelled
refused approve /ask
done /good {}
expect /good done {}
expect /after-good cancelled
expect run failed error no way
expect failures true
