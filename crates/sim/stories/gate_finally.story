# The `finally` of a gate runs after a rejection and after a skip, but nothing behind the gate does.
---
workflow: { id: gates, name: Gates }
config: { parameters: { risky: { type: boolean, default: false } } }
stages:
  - { id: ask, type: gate, gate: { timeout: none }, finally: { type: task, task: tidy }, error_policy: { on_failure: skip_dependents } }
  - { id: behind, depends_on: [ask], type: task, task: behind }
  - { id: skipped, type: gate, condition: parameters.risky, gate: { timeout: none }, finally: { type: task, task: tidy } }
  - { id: behind-skipped, depends_on: [skipped], type: task, task: behind }
---
start
expect /behind-skipped skipped
reject /ask/ask no
expect jobs /ask/finally
done /ask/finally {}
expect /behind skipped
expect run failed gate_rejected
