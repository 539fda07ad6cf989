# Without a signal in time, a wait fails with timeout, or is done with the value given for that case.
---
workflow: { id: waits, name: Waits }
config: { timeout: none }
stages:
  - { id: a, type: wait, wait: { signal: go, timeout: 1h, on_timeout: { value: { late: true } } } }
  - { id: b, depends_on: [a], type: wait, wait: { signal: go, timeout: 1h } }
---
start
wait 59m
crash
expect /a waiting go
wait 1m
expect /a done {"value":{"late":true}}
wait 1h
expect /b failed timeout
expect run failed timeout
