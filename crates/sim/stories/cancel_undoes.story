# compensate_on_cancel undoes completed steps when a run is canceled, after its running steps have stopped.
---
workflow: { id: pay, name: Pay }
config: { compensate_on_cancel: true }
stages:
  - { id: charge, type: task, task: charge, compensate: refund }
  - { id: refund, type: task, task: refund, input: "${{ undo.output.r }}" }
  - { id: ship, depends_on: [charge], type: task, task: ship }
---
start
done /charge {"r":1}
cancel
expect jobs /ship (aborted)
stopped /ship
expect jobs /charge/refund
expect input /charge/refund 1
done /charge/refund {}
expect run cancelled enough
expect undone some(wholly)
