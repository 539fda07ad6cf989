# A step that exceeds a budget fails with budget_exceeded and is not retried; a lost call asks again.
---
workflow: { id: wf, name: Wf }
config: { budget: { tokens: 100 } }
error_policy: { default_retry: { max_attempts: 3, initial_interval: 1s, jitter: 0 } }
stages:
  - { id: a, type: agent, roles: { primary: { artifact: "agent:x" } } }
  - { id: b, depends_on: [a], type: agent, roles: { primary: { artifact: "agent:x" } } }
---
start
expect jobs /a (asks for run:story)
grant /a
lost /a
expect jobs /a (asks for run:story)
grant /a
spent /a {"tokens":40}
done /a {}
expect jobs /b (asks for run:story)
deny /b run:story
expect /b failed budget_exceeded budget `run:story` exceeded: not enough tokens left
expect run failed
