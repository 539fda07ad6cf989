# output_schema is enforced; input_schema is checked when the run starts.
--- dagnats
{"name": "schemas", "input_schema": {"type": "object", "required": ["n"]}, "output_schema": {"type": "object", "required": ["r"]}, "steps": [{"id": "a", "task": "a"}]}
---
refused start {"m":1}
start {"n":1}
done /a {"x":1}
expect run failed contract_violation
