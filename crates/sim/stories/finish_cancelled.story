# An early end as canceled, inside a fan-out.
---
workflow: { id: fin, name: Fin }
stages:
  - id: each
    type: fan_out
    fan_out: { source: [1, 2, 3], concurrency: 1, stage_template: { id: stop, condition: "item == 2", type: finish, finish: { status: cancelled } } }
---
start
expect nothing /each[2]
expect run cancelled
