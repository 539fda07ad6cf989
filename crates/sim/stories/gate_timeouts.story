# After its timeout, a gate fails with timeout (halt), is rejected (reject), or is approved (auto_approve). The
# timeout survives a crash.
---
workflow: { id: gates, name: Gates }
config: { timeout: none }
stages:
  - { id: a, type: gate, gate: { timeout: 1h }, error_policy: { on_failure: skip_dependents } }
  - { id: b, type: gate, gate: { timeout: 2h, on_timeout: reject }, error_policy: { on_failure: skip_dependents } }
  - { id: c, type: gate, gate: { timeout: 3h, on_timeout: auto_approve } }
  - { id: d, type: gate, gate: { timeout: none } }
  - { id: go, depends_on: [c], type: task, task: go }
---
start
wait 59m
crash
expect /a asking
wait 1m
expect /a failed timeout
wait 1h
expect /b failed gate_rejected
expect jobs
wait 1h
expect /c done
expect jobs /go
refused approve /c
done /go {}
wait 300d
expect /d asking
approve /d
expect run failed timeout
