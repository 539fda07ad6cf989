# A failed item starts no further one. Running items finish, then the stage fails with the first failed item in the
# order of items.
---
workflow: { id: fan, name: Fan }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: each
    type: fan_out
    fan_out:
      source: [a, b, c, d]
      concurrency: 3
      stage_template: { id: work, type: task, task: work }
---
start
fail /each[2]/work error "c broke"
expect jobs /each[0]/work /each[1]/work
done /each[1]/work {}
fail /each[0]/work error "a broke"
expect nothing /each[3]
expect /each failed error a broke
expect run failed error a broke
