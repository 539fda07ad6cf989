# Inputs are checked against their types before anything is called, and the stage receives all of them by name.
---
workflow: { id: inputs, name: Inputs }
stages:
  - { id: first, type: task, task: first }
  - id: second
    depends_on: [first]
    roles: { primary: { artifact: "agent:writer" } }
    inputs:
      tone: { type: string, required: false, source: "${{ stages.first.outputs.tone }}" }
      count: { type: integer, source: "${{ stages.first.outputs.count }}" }
  - id: third
    depends_on: [second]
    roles: { primary: { artifact: "agent:writer" } }
    inputs:
      count: { type: integer, source: "${{ stages.first.outputs.text }}" }
---
start
done /first {"count":3,"text":"three"}
expect input /second {"tone":null,"count":3}
done /second {}
expect jobs
expect /third failed contract_violation
expect run failed contract_violation
