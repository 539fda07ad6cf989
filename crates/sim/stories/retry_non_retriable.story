# A non_retriable failure of a DagNats worker is not retried; a failure with a delay of its own replaces the retry
# delay.
--- dagnats
{"name": "again", "steps": [
  {"id": "a", "task": "a", "retry": {"max_attempts": 5, "initial_delay": "10s", "strategy": "exponential", "multiplier": 3, "max_delay": "25s"}}
]}
---
start
fail /a error
wait 10s
fail /a error
wait 25s
fail /a retry_after after 2s
wait 2s
fail /a retry_after after 2h
wait 1h
fail /a non_retriable "broken for good"
expect delays /a 10s 25s 2s 1h
expect run failed non_retriable broken for good
