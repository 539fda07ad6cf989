# D32: compensate_on_cancel undoes what was done when a run is cancelled, after what was under way has stopped.
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
expect jobs /ship (told to stop)
stopped /ship
expect jobs /charge/refund
expect input /charge/refund 1
done /charge/refund {}
expect run cancelled enough
expect undone some(wholly)
