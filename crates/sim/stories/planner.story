# A planner adds steps next to itself. An added step receives the planner's value if it has no dependencies, the
# value of its only dependency, or an object of values by id. Dependents of the planner do not wait for the added
# steps.
--- dagnats
{"name": "plans", "steps": [
  {"id": "plan", "type": "planner", "task": "plan", "config": {"max_steps": 4, "max_depth": 3, "allowed_tasks": ["dig", "fill"]}},
  {"id": "after", "task": "after", "depends_on": ["plan"]}
]}
---
start {"n":1}
done /plan {"steps":[{"id":"x","task":"dig"},{"id":"y","task":"dig"},{"id":"z","task":"fill","depends_on":["x","y"]},{"id":"w","task":"fill","depends_on":["z"]}]}
expect jobs /after /plan.x /plan.y
crash
done /after 0
done /plan.x 1
done /plan.y 2
expect input /plan.z {"x":1,"y":2}
done /plan.z 3
expect input /plan.w 3
done /plan.w 4
expect run done
