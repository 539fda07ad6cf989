# A cancel by a person undoes nothing unless the file sets compensate_on_cancel.
---
workflow: { id: pay, name: Pay }
error_policy: { on_stage_failure: rollback }
stages:
  - { id: charge, type: task, task: charge, compensate: { type: task, task: refund } }
  - { id: ship, depends_on: [charge], type: task, task: ship }
---
start
done /charge/charge {}
cancel
stopped /ship
expect run cancelled enough
expect undone none
refused reopen
