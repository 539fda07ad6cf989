# `continue` completes the step with its branch_results, and the run continues.
--- dcc
name: branches
steps:
  - id: checks
    kind: parallel
    on_any_fail: continue
    steps: [{id: a, tool: a}, {id: b, tool: b}]
  - {id: gather, tool: gather, args: "{{steps.checks.output.branch_results}}"}
---
start
fail /checks/a error
expect run running
done /checks/b {}
expect input /gather ["failed","completed"]
done /gather {}
expect run done
expect failures true
