# A repeated signal with the same id is the same signal: it answers only one wait.
---
workflow: { id: waits, name: Waits }
stages:
  - { id: first, type: wait, wait: { signal: go } }
  - { id: second, depends_on: [first], type: wait, wait: { signal: go } }
---
start
signal go 1
repeat go 1
crash
repeat go 1
expect /second waiting go
signal go 2
expect run done
