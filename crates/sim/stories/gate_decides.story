# A gate outputs the decision, who made it, the reason, and the option as written in the file. A second decision is
# refused.
---
workflow: { id: gates, name: Gates }
config: { parameters: { v: { type: string, default: x } } }
stages:
  - id: ask
    type: gate
    gate: { timeout: none, message: "Ship ${{ parameters.v }}?", options: [Ship it, Later, Abort], approvers: [dana, lee] }
  - { id: go, depends_on: [ask], type: task, task: go, input: "${{ stages.ask.outputs }}" }
---
start {"v":"2.0"}
expect /ask asking "Ship 2.0?"
refused choose /ask never by dana
refused approve /ask by kim
crash
expect /ask asking
choose /ask later by dana
expect input /go {"decision":"approved","by":"dana","reason":null,"choice":"Later"}
refused approve /ask by lee
done /go {}
expect run done
