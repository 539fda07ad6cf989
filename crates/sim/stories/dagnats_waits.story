# In DagNats, sleep outputs null, wait_for_event outputs {"timeout":true} if no event arrives, and a rejected
# approval fails.
--- dagnats
{"name": "waits", "steps": [
  {"id": "nap", "type": "sleep", "config": {"duration": "10s"}},
  {"id": "event", "type": "wait_for_event", "depends_on": ["nap"], "config": {"event": "paid", "match": {"left": "order", "op": "eq", "right": "input.order"}, "timeout": "1m"}},
  {"id": "more", "type": "wait_for_event", "depends_on": ["event"], "config": {"event": "paid", "match": {"left": "order", "op": "eq", "right": "input.order"}, "timeout": "1m"}},
  {"id": "ask", "type": "approval", "depends_on": ["more"], "config": {"subject": "ask.me", "timeout": "1h"}},
  {"id": "last", "task": "last", "depends_on": ["event"]}
]}
---
start {"order":7}
wait 10s
expect /nap done null
expect /event waiting paid
wait 1m
expect /event done {"timeout":true}
expect input /last {"timeout":true}
done /last {}
expect /more waiting paid
deliver /more paid {"order":7,"n":1}
expect /more done {"order":7,"n":1}
reject /ask
expect run failed gate_rejected
