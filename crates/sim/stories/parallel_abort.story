# `abort` cancels the siblings, then the step fails with the branch that failed.
--- dcc
name: branches
steps:
  - id: checks
    kind: parallel
    on_any_fail: abort
    steps:
      - {id: a, tool: a}
      - {id: b, tool: b}
      - {id: ask, kind: approve, prompt: "Well?"}
---
start
fail /checks/b error "b broke"
expect jobs /checks/a (aborted)
expect run running
stopped /checks/a
expect /checks/a cancelled
expect /checks/ask cancelled
expect /checks failed error b broke
expect run failed error b broke
