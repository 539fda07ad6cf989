# compensate_on_cancel also applies when the run times out, and the time for undoing does not count.
---
workflow: { id: pay, name: Pay }
config: { compensate_on_cancel: true, timeout: 1h }
stages:
  - { id: charge, type: task, task: charge, compensate: refund }
  - { id: refund, type: task, task: refund, error_policy: { timeout: none } }
  - { id: ship, depends_on: [charge], type: task, task: ship, error_policy: { timeout: none } }
---
start
done /charge {}
wait 1h
stopped /ship
expect jobs /charge/refund
wait 3h
expect jobs /charge/refund
done /charge/refund {}
expect run failed timeout
expect undone some(wholly)
