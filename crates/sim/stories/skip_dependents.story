# skip_dependents skips direct and indirect dependents of the failure and continues with the rest; the run has
# failed.
---
workflow: { id: rest, name: Rest }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: bad, type: task, task: bad, error_policy: { on_failure: skip_dependents } }
  - { id: child, depends_on: [bad], type: task, task: child }
  - { id: grandchild, depends_on: [child], type: task, task: grandchild }
  - { id: other, type: task, task: other }
  - { id: after, depends_on: [other], type: task, task: after }
---
start
fail /bad error "bad day"
expect /child skipped dependency_failed bad
expect /grandchild skipped dependency_failed
done /other {}
expect jobs /after
done /after {}
expect /after done {}
expect run failed error bad day
