# A compensation can be a list of stages: all of them run, in order.
---
workflow: { id: pay, name: Pay }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: reserve, type: task, task: reserve, compensate: [{ id: release, type: task, task: release }, { id: tell, depends_on: [release], type: task, task: tell }] }
  - { id: ship, depends_on: [reserve], type: task, task: ship }
---
start
done /reserve/reserve {"r":1}
fail /ship error "no truck"
expect jobs /reserve/release
done /reserve/release {}
expect jobs /reserve/tell
done /reserve/tell {}
expect run failed error no truck
expect undone some(wholly)
