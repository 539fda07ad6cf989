# An invalid answer of a planner is a failure of class contract_violation: an unknown task, too many steps, too deep
# a chain, or a cycle.
---
workflow: { id: plans, name: Plans }
error_policy: { on_stage_failure: continue, default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
  - { id: b, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
  - { id: c, type: task, task: plan, planner: { max_stages: 3, max_depth: 2, tasks: [dig] } }
  - { id: d, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
  - { id: e, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
  - { id: f, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
  - { id: g, type: task, task: plan, planner: { max_stages: 2, max_depth: 2, tasks: [dig] } }
---
start
done /a {"steps":[{"id":"x","task":"steal"}]}
expect /a failed contract_violation
done /b {"steps":[{"id":"x","task":"dig"},{"id":"y","task":"dig"},{"id":"z","task":"dig"}]}
expect /b failed contract_violation
done /c {"steps":[{"id":"x","task":"dig"},{"id":"y","task":"dig","depends_on":["x"]},{"id":"z","task":"dig","depends_on":["y"]}]}
expect /c failed contract_violation
done /d {"steps":[{"id":"x","task":"dig","depends_on":["y"]},{"id":"y","task":"dig","depends_on":["x"]}]}
expect /d failed contract_violation
done /e {"steps":[{"id":"x","task":"dig"},{"id":"x","task":"dig"}]}
expect /e failed contract_violation
done /f "no plan"
expect /f failed contract_violation
done /g {"steps":[]}
expect /g done
expect run done
