# The scope `workflow` in DCC-MCP means this run.
--- dcc
name: keys
steps:
  - {id: a, tool: one, idempotency_key: "s_{{inputs.n}}", idempotency_scope: workflow}
  - {id: b, tool: two, idempotency_key: "s_{{inputs.n}}"}
---
start {"n":1}
done /a {"x":1}
expect /b done {"x":1}
expect run done
