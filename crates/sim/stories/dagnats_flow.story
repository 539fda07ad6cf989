# The dependencies determine the input of a step: none, one or several. skip_if reads one field; a missing field
# never skips; a skipped step satisfies its dependents, and its output is null. The run outputs the results of the
# steps without dependents.
--- dagnats
{"name": "flow", "steps": [
  {"id": "a", "task": "a"},
  {"id": "b", "task": "b", "depends_on": ["a"], "skip_if": {"step_id": "a", "field": "n", "op": "==", "value": 0}},
  {"id": "c", "task": "c", "depends_on": ["a"], "skip_if": {"step_id": "a", "field": "missing", "op": "!=", "value": 0}},
  {"id": "d", "task": "d", "depends_on": ["b", "c"]},
  {"id": "e", "task": "e", "depends_on": ["b"]}
]}
---
start {"who":"ann"}
expect input /a {"who":"ann"}
done /a {"n":0}
expect /b skipped condition_false
expect jobs /c /e
expect input /c {"n":0}
expect input /e null
done /c [1]
expect input /d {"b":null,"c":[1]}
done /d 4
done /e 5
expect run done {"d":4,"e":5}
