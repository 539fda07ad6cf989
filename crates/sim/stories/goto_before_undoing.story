# `on_failure` hands the failure to another step, and then nothing is undone, even if something could be.
--- dagnats
{"name": "rescue", "steps": [
  {"id": "book", "task": "book", "compensate": "unbook"},
  {"id": "pay", "task": "pay", "depends_on": ["book"], "on_failure": "call"},
  {"id": "call", "task": "call", "depends_on": ["book"]},
  {"id": "unbook", "task": "unbook"},
  {"id": "mail", "task": "mail", "depends_on": ["book"]}
]}
---
start
done /book {"b":1}
expect jobs /mail /pay
fail /pay error "no money"
expect jobs /mail /pay/call
done /pay/call {}
done /mail {}
expect recovered /pay
expect run done {"pay":null,"mail":{}}
expect undone none
