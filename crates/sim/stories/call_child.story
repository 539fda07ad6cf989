# A call of another workflow is a run of its own: a job with input and retries like any other.
--- dagnats
{"name": "parent", "steps": [
  {"id": "a", "task": "a"},
  {"id": "child", "type": "sub_workflow", "config": {"workflow": "other"}, "depends_on": ["a"]},
  {"id": "aside", "type": "sub_workflow", "config": {"workflow": "other", "detach": true}, "depends_on": ["a"]},
  {"id": "last", "task": "last", "depends_on": ["child"]}
]}
---
start
done /a {"n":1}
expect jobs /aside /child
expect input /child {"n":1}
done /aside {"child_run_id":"r2"}
crash
expect jobs /child
done /child {"out":2}
expect input /last {"out":2}
done /last {}
expect run done
