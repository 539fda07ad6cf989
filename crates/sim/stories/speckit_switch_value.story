# A switch outputs the raw value of its expression (expression_value) and the taken case as text; without a matching
# case and a default, that is `__default__`.
--- speckit
schema_version: "1.0"
workflow: {id: arms, name: Arms, version: "1.0.0"}
inputs: {fast: {type: boolean, default: true}, n: {type: number, default: 2}}
steps:
  - {id: a, type: switch, expression: "{{ inputs.fast }}", cases: {true: [{id: quick, type: shell, run: ./quick}]}}
  - {id: b, type: switch, expression: "{{ inputs.n }}", cases: {1: [{id: one, type: shell, run: ./one}]}}
---
start {"fast":true,"n":2}
done /a/quick {"exit_code":0,"stdout":"","stderr":""}
expect /a done {"matched_case":"True","expression_value":true}
expect /b done {"matched_case":"__default__","expression_value":2}
expect run done
