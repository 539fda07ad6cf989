# A global key with a result of another run provides that result; otherwise this run does the work.
--- dcc
name: export
steps:
  - {id: one, tool: maya__export, args: {n: 1}, idempotency_key: "x_{{inputs.s}}", idempotency_scope: global, idempotency_ttl_secs: 60}
  - {id: two, tool: maya__export, args: {n: 2}, idempotency_key: "y", idempotency_scope: global}
---
start {"s":"a"}
expect jobs /one (asks for key:x_a)
found /one {"file":"a.fbx"}
expect /one done {"file":"a.fbx"}
expect jobs /two (asks for key:y)
grant /two
done /two {"file":"b.fbx"}
expect run done
