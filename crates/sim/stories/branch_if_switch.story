# `if` and `switch` take one arm. The arm is an output, and declared outputs can read the steps inside. The other
# arm has no instances.
---
workflow: { id: arms, name: Arms }
config:
  parameters: { n: { type: integer }, kind: { type: string } }
stages:
  - id: size
    type: branch
    branch:
      if: parameters.n > 2
      then: [{ id: big, type: task, task: big }]
      else: [{ id: small, type: task, task: small }]
    outputs:
      result: { type: any, required: false, source: "${{ stages.small.outputs.r }}" }
  - id: target
    depends_on: [size]
    type: branch
    branch:
      switch: parameters.kind
      cases:
        a: [{ id: to-a, type: task, task: a }]
        b: [{ id: to-b, type: task, task: b }]
      default: [{ id: none, type: assign, set: { deployed: false } }]
  - { id: sum, depends_on: [target], type: task, task: sum, input: ["${{ stages.size.outputs.branch }}", "${{ stages.size.outputs.result }}", "${{ stages.target.outputs.branch }}"] }
---
start {"n":1,"kind":"c"}
expect jobs /size/small
expect nothing /size/big
crash
done /size/small {"r":5}
expect /target/none done {"deployed":false}
expect input /sum ["else",5,"default"]
done /sum {}
expect run done
