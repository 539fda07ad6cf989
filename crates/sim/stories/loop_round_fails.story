# A failed round ends the loop, which fails with the same failure. A condition that cannot be evaluated fails it,
# too.
---
workflow: { id: loops, name: Loops }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: one
    type: loop
    error_policy: { on_failure: continue }
    loop: { until: stages.a.outputs.ok, max: 5, stages: [{ id: a, type: task, task: a }] }
  - id: two
    depends_on: [one]
    type: loop
    loop: { until: stages.b.outputs.n > 1, max: 5, stages: [{ id: b, type: task, task: b }] }
---
start
done /one[0]/a {"ok":false}
fail /one[1]/a error "round two"
expect nothing /one[2]
expect /one failed error round two
done /two[0]/b {"n":"x"}
expect /two failed expression_error
expect run failed expression_error
