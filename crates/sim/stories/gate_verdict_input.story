# A value in the verdict input decides at once and must be one of the options; the output has the option as written
# in the file. With retry, a rejection empties the input and asks again; a change of the inputs then decides.
--- speckit
schema_version: "1.0"
workflow: {id: gates, name: Gates, version: "1.0.0"}
inputs: {verdict: {type: string, default: ""}}
steps:
  - {id: ask, type: gate, message: "Well?", options: [Approve, Reject], on_reject: retry, verdict_input: verdict}
  - {id: go, type: shell, run: "echo {{ steps.ask.output.choice }} {{ inputs.verdict }}"}
---
start {"verdict":"reject"}
expect /ask asking "Well?"
expect run running
change {"verdict":"approve"}
expect input /go "echo Approve approve"
done /go {"exit_code":0,"stdout":"","stderr":""}
expect run done
