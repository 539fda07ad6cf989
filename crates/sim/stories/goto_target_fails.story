# If the step that handles a failure fails itself, the run ends as `compensate_failed`; nothing else is undone.
--- dagnats
{"name": "rescue", "steps": [
  {"id": "book", "task": "book", "compensate": "unbook"},
  {"id": "pay", "task": "pay", "depends_on": ["book"], "on_failure": "call"},
  {"id": "call", "task": "call"},
  {"id": "unbook", "task": "unbook"},
  {"id": "ship", "task": "ship", "depends_on": ["pay"]}
]}
---
start {"n":1}
done /book {"b":1}
fail /pay error "no money"
expect jobs /pay/call
expect input /pay/call {"failed_step":"pay","error":"no money"}
fail /pay/call error "nobody there"
expect jobs
expect run failed error no money
expect undone some(partly)
refused reopen
