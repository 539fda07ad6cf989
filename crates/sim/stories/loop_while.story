# `while` is evaluated before each round, including the first. After `max` rounds, the loop is done regardless of
# the condition, and outputs that it is exhausted.
---
workflow: { id: loops, name: Loops }
stages:
  - id: none
    type: loop
    loop: { while: "false", max: 3, stages: [{ id: never, type: task, task: t }] }
  - id: drain
    type: loop
    loop:
      while: default(stages.take.outputs.more, true)
      max: 2
      stages: [{ id: take, type: task, task: take, input: "${{ index }}" }]
    outputs:
      last: { type: any, source: "${{ stages.take.outputs.n }}" }
  - { id: sum, depends_on: [none, drain], type: task, task: sum, input: ["${{ stages.none.outputs.iterations }}", "${{ stages.none.outputs.exhausted }}", "${{ stages.drain.outputs.iterations }}", "${{ stages.drain.outputs.exhausted }}", "${{ stages.drain.outputs.last }}"] }
---
start
expect nothing /none[0]
expect input /drain[0]/take 0
done /drain[0]/take {"more":true,"n":1}
expect input /drain[1]/take 1
crash
done /drain[1]/take {"more":true,"n":2}
expect nothing /drain[2]
expect input /sum [0,false,2,true,2]
done /sum {}
expect run done
