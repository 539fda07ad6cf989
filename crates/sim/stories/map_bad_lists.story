# A map over nothing is done with []; too many elements are a failure.
--- dagnats
{"name": "mapped", "steps": [
  {"id": "list", "task": "list"},
  {"id": "each", "type": "map", "task": "work", "depends_on": ["list"], "config": {"max_items": 2}},
  {"id": "more", "task": "more", "depends_on": ["each"]},
  {"id": "last", "type": "map", "task": "work", "depends_on": ["more"], "config": {"max_items": 2}}
]}
---
start
done /list []
expect /each done []
expect input /more []
done /more [1,2,3]
expect /last failed fan_out_source
expect run failed fan_out_source
