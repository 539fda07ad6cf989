# A verdict that is not one of the options fails the gate.
--- speckit
schema_version: "1.0"
workflow: {id: gates, name: Gates, version: "1.0.0"}
inputs: {verdict: {type: string, default: ""}}
steps:
  - {id: ask, type: gate, message: "Well?", verdict_input: verdict}
---
start {"verdict":"maybe"}
expect /ask failed
expect run failed
