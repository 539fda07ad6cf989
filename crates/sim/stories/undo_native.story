# A run that fails with rollback is undone in reverse order of completion once no step is running. An inline
# compensation belongs to the step it undoes and can read it; steps that did not run are not undone.
---
workflow: { id: pay, name: Pay }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: charge, type: task, task: charge, compensate: { type: task, task: refund, input: "${{ stages.charge.outputs.receipt }}" } }
  - { id: reserve, type: task, task: reserve, compensate: [{ id: release, type: task, task: release }] }
  - { id: slow, type: task, task: slow, compensate: give-back }
  - { id: give-back, type: task, task: give, input: ["${{ undo.step }}", "${{ undo.output.n }}", "${{ failure.step }}", "${{ failure.message }}"] }
  - { id: ship, depends_on: [charge, reserve], type: task, task: ship, compensate: { type: task, task: unship } }
---
start
done /reserve/reserve {"r":1}
done /charge/charge {"receipt":"R7"}
fail /ship/ship error "no truck"
expect jobs /slow
done /slow {"n":3}
expect jobs /slow/give-back
expect input /slow/give-back ["slow",3,"ship","no truck"]
done /slow/give-back {}
expect input /charge/compensate "R7"
crash
done /charge/compensate {}
expect jobs /reserve/release
done /reserve/release {}
expect run failed error no truck
expect undone some(wholly)
refused reopen
