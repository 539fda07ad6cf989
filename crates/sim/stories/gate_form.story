# Fields of a form are outputs. Missing fields have their default; a missing required field or a wrong type or
# choice is refused.
---
workflow: { id: gates, name: Gates }
stages:
  - id: ask
    type: gate
    gate:
      timeout: none
      form:
        ticket: { type: string }
        size: { type: string, required: false, default: small, choices: [small, large] }
        note: { type: string, required: false }
  - { id: go, depends_on: [ask], type: task, task: go, input: ["${{ stages.ask.outputs.ticket }}", "${{ stages.ask.outputs.size }}", "${{ stages.ask.outputs.note }}"] }
---
start
refused approve /ask
refused approve /ask {"ticket":5}
refused approve /ask {"ticket":"T1","size":"huge"}
approve /ask {"ticket":"T1"}
expect input /go ["T1","small",null]
done /go {}
expect run done
