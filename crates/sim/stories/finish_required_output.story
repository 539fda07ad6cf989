# An early end need not set every declared output: a missing required one is null, and one with a default has that.
---
workflow: { id: fin, name: Fin }
stages:
  - { id: stop, type: finish, finish: { outputs: { reason: nothing to do } } }
outputs:
  reason: { type: string, source: "x" }
  report: { type: string, required: true, source: "y" }
  count: { type: integer, default: 0, source: "${{ 1 }}" }
---
start
expect run done {"reason":"nothing to do","report":null,"count":0}
