# A gate that approves itself, at its timeout or by an input, has the defaults of its form.
---
workflow: { id: gates, name: Gates }
config: { timeout: none, parameters: { verdict: { type: string } } }
stages:
  - id: ask
    type: gate
    gate:
      timeout: 1h
      on_timeout: auto_approve
      form:
        size: { type: string, default: small }
        count: { type: integer, default: 1 }
        note: { type: string, required: false }
  - id: decided
    depends_on: [ask]
    type: gate
    gate: { timeout: none, verdict_input: verdict, form: { size: { type: string, default: large } } }
  - { id: go, depends_on: [decided], type: task, task: go, input: ["${{ stages.ask.outputs }}", "${{ stages.decided.outputs.size }}"] }
---
start
wait 1h
crash
expect /decided asking
change {"verdict":"approve"}
expect input /go [{"decision":"approved","by":"timeout","reason":null,"choice":"approve","size":"small","count":1,"note":null},"large"]
done /go {}
expect run done
