# A planner adds steps beside itself. One that depends on none of them is given the planner's value, one that depends on one its value,
# on several an object by id. What waited for the planner does not wait for what it added.
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
