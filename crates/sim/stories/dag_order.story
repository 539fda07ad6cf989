# Batches are only for display. A stage starts when its own dependencies are done, even if other stages of its batch
# still run.
---
workflow: { id: diamond, name: Diamond }
stages:
  - { id: quick, type: task, task: quick }
  - { id: slow, type: task, task: slow }
  - { id: after-quick, depends_on: [quick], type: task, task: next, input: "${{ stages.quick.outputs.n }}" }
  - { id: both, depends_on: [after-quick, slow], type: assign, set: { sum: "${{ stages.quick.outputs.n }} and ${{ stages.slow.outputs.n }}" } }
outputs:
  sum: { type: string, source: "${{ stages.both.outputs.sum }}" }
---
start
expect jobs /quick /slow
done /quick {"n":1}
expect jobs /after-quick /slow
expect input /after-quick 1
done /after-quick {}
expect /both pending
crash
expect jobs /slow
done /slow {"n":2}
expect /both done {"sum":"1 and 2"}
expect run done {"sum":"1 and 2"}
expect failures false
