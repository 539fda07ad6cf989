# An output of the run with a wrong type fails the run.
---
workflow: { id: out, name: Out }
stages: [{ id: a, type: task, task: t }]
outputs:
  n: { type: integer, source: "${{ stages.a.outputs.n }}" }
---
start
done /a {"n":"x"}
expect run failed contract_violation
