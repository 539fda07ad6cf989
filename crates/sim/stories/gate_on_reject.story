# The effect of a rejection: skip completes the gate with the choice, retry asks again, fail is a failure that can
# be reopened, and abort is one that cannot.
---
workflow: { id: gates, name: Gates }
stages:
  - { id: skip, type: gate, gate: { timeout: none, on_reject: skip } }
  - { id: retry, depends_on: [skip], type: gate, gate: { timeout: none, on_reject: retry } }
  - { id: fail, depends_on: [retry], type: gate, gate: { timeout: none, on_reject: fail } }
  - { id: abort, depends_on: [fail], type: gate, gate: { timeout: none, on_reject: abort } }
---
start
reject /skip
expect /skip done
reject /retry
expect /retry asking
expect run running
approve /retry
reject /fail "no"
expect run failed gate_rejected no
reopen
expect /fail asking
expect /skip done
approve /fail
reject /abort
expect run failed gate_rejected
refused reopen
