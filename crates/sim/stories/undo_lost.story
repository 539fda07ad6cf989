# A step that ends as lost may have taken effect: a rollback compensates it, and the compensation can read that this
# is uncertain. A delivery that no executor started does not count as a loss.
---
workflow: { id: pay, name: Pay }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: reserve, type: task, task: reserve, compensate: release }
  - { id: release, type: task, task: release, input: "${{ undo.uncertain }}" }
  - { id: charge, depends_on: [reserve], type: task, task: charge, compensate: refund }
  - { id: refund, type: task, task: refund, input: "${{ undo.uncertain }}" }
---
start
done /reserve {}
unstarted /charge
lost /charge
lost /charge
unstarted /charge
lost /charge
lost /charge
expect jobs /charge
lost /charge
expect jobs /charge/refund
expect input /charge/refund true
crash
done /charge/refund {}
expect jobs /reserve/release
expect input /reserve/release false
done /reserve/release {}
expect run failed lost
expect undone some(wholly)
