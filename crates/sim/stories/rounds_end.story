# The last allowed round must finish; a continue is then a failure of class `error` that is not retried.
--- dagnats
{"name": "loops", "steps": [
  {"id": "a", "type": "agent_loop", "task": "think", "config": {"max_iterations": 2}, "retry": {"max_attempts": 5, "initial_delay": "1s"}}
]}
---
start
continue /a 1
fail /a error
wait 1s
expect jobs /a
expect input /a 1
continue /a 2
expect jobs
expect run failed error
