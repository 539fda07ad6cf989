# A required input that is null fails the stage with `contract_violation` before anything is called; an optional one
# is null.
---
workflow: { id: inputs, name: Inputs }
stages:
  - { id: first, type: task, task: first }
  - id: second
    depends_on: [first]
    roles: { primary: { artifact: "agent:writer" } }
    inputs:
      tone: { type: string, required: false, source: "${{ stages.first.outputs.tone }}" }
      topic: { type: string, source: "${{ stages.first.outputs.topic }}" }
---
start
done /first {"tone":"dry"}
expect jobs
expect /second failed contract_violation
expect run failed contract_violation
