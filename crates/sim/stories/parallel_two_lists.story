# Two branches of several steps each. Both are implicit blocks and must have different paths.
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
