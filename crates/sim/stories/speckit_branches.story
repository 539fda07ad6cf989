# `if` and `switch` of Spec Kit: cases compare texts, a condition follows Python, continue_on_error continues after
# the step itself, and steps that did not run are null.
--- speckit
schema_version: "1.0"
workflow: {id: arms, name: Arms, version: "1.0.0"}
inputs: {fast: {type: boolean, default: true}}
steps:
  - {id: try, type: shell, run: ./try, continue_on_error: true}
  - id: sort
    type: switch
    expression: "{{ inputs.fast }}"
    cases:
      true: [{id: quick, type: shell, run: ./quick}]
    default: [{id: slow, type: shell, run: ./slow}]
  - id: maybe
    type: if
    condition: "{{ steps.slow.output }}"
    then: [{id: then, type: shell, run: ./then}]
    else: [{id: else, type: shell, run: "echo {{ steps.sort.output.matched_case }} {{ steps.try.status }}"}]
---
start {"fast":true}
expect jobs /try
fail /try error "exited with code 1"
expect jobs /sort/quick
done /sort/quick {"exit_code":0,"stdout":"","stderr":""}
expect input /maybe/else "echo True failed"
done /maybe/else {"exit_code":0,"stdout":"","stderr":""}
expect run done
expect failures true
