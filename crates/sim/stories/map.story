# A DagNats map: one task for each element, each retried by itself; an empty list gives an empty list; the results
# are a list.
--- dagnats
{"name": "mapped", "steps": [
  {"id": "list", "task": "list"},
  {"id": "each", "type": "map", "task": "work", "depends_on": ["list"], "config": {"max_items": 3}, "retry": {"max_attempts": 1, "initial_delay": "1s"}},
  {"id": "sum", "task": "sum", "depends_on": ["each"]}
]}
---
start
done /list ["x","y"]
expect jobs /each[0]/each /each[1]/each
expect input /each[1]/each "y"
fail /each[0]/each error
done /each[1]/each 2
wait 1s
expect attempts /each[0]/each 2
expect attempts /each[1]/each 1
done /each[0]/each 1
expect input /sum [1,2]
done /sum 3
expect run done 3
