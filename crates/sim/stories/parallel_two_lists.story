# D19: two branches of several steps each. Both are implicit blocks and must have paths of their own. HANGS the engine as it is.
--- dcc
name: branches
steps:
  - id: checks
    kind: parallel
    branches:
      - [{id: naming, tool: naming}, {id: report, tool: report}]
      - [{id: colours, tool: colours}, {id: paint, tool: paint}]
---
start
expect run running
