# An output of the run that breaks its type makes the run fail.
---
workflow: { id: out, name: Out }
stages: [{ id: a, type: task, task: t }]
outputs:
  n: { type: integer, source: "${{ stages.a.outputs.n }}" }
---
start
done /a {"n":"x"}
expect run failed contract_violation
