# The value of a continue is the input of the next round, the delay between rounds is durable, and each round has
# its own attempts.
--- dagnats
{"name": "loops", "steps": [
  {"id": "a", "type": "agent_loop", "task": "think", "config": {"max_iterations": 3, "loop_delay": "10s", "budget_warn_at": 1, "budget_force_at": 2},
   "retry": {"max_attempts": 1, "initial_delay": "1s"}}
]}
---
start {"q":1}
expect input /a {"q":1}
expect round /a 0
note /a checkpoint "c1"
continue /a {"q":2}
expect jobs
crash
wait 9s
expect jobs
wait 1s
expect input /a {"q":2}
expect round /a 1 warn
expect notes /a {"checkpoint":"c1"}
fail /a error
wait 1s
expect input /a {"q":2}
fail /a error
expect run failed error
