# An error in a condition or in a required input fails the stage without a retry; it never counts as false.
---
workflow: { id: wrong, name: Wrong }
error_policy: { on_stage_failure: continue }
stages:
  - { id: ask, type: task, task: ask }
  - { id: compared, depends_on: [ask], condition: "stages.ask.outputs.n > 1", type: task, task: a }
  - id: fed
    depends_on: [ask]
    type: task
    task: b
    inputs:
      n: { type: integer, source: "${{ length(stages.ask.outputs.n) }}" }
  - { id: last, depends_on: [compared, fed], type: task, task: c }
---
start
done /ask {"n":true}
expect /compared failed expression_error
expect /fed failed expression_error
expect attempts /fed 0
expect jobs /last
done /last {}
expect run done
expect failures true
