# The time is that of the decision, and a later replay reads what was recorded.
---
workflow: { id: time, name: Time }
config: { env: { STARTED: "${{ now() }}" } }
stages:
  - { id: first, type: assign, set: { at: "${{ now() }}" } }
  - { id: pause, depends_on: [first], type: wait, wait: { for: 1h } }
  - { id: second, depends_on: [pause], type: assign, set: { at: "${{ now() }}", later: "${{ now() > stages.first.outputs.at }}" } }
  - { id: hold, depends_on: [second], type: task, task: hold, input: ["${{ env.STARTED }}", "${{ now() }}"] }
  - { id: tell, depends_on: [hold], type: task, task: tell, input: ["${{ stages.first.outputs.at }}", "${{ stages.second.outputs.at }}", "${{ stages.second.outputs.later }}", "${{ env.STARTED }}"] }
outputs: { at: { source: "${{ stages.second.outputs.at }}" } }
---
start
crash
wait 1h
crash
expect input /hold ["2026-01-01T00:00:00Z","2026-01-01T01:00:00Z"]
wait 10m
crash
lost /hold
expect input /hold ["2026-01-01T00:00:00Z","2026-01-01T01:00:00Z"]
done /hold {}
expect input /tell ["2026-01-01T00:00:00Z","2026-01-01T01:00:00Z",true,"2026-01-01T00:00:00Z"]
done /tell {}
expect run done
