# max_attempts in DagNats counts the retries after the first attempt; 0 disables retries. Attempts are numbered from
# 1.
--- dagnats
{"name": "again", "default_retry": {"max_attempts": 2, "initial_delay": "1s", "strategy": "linear"}, "steps": [
  {"id": "a", "task": "a"},
  {"id": "b", "task": "b", "depends_on": ["a"], "retry": {"max_attempts": 0}}
]}
---
start
fail /a error
expect delays /a 1s
expect jobs
wait 1s
expect attempts /a 2
fail /a error
wait 2s
expect attempts /a 3
done /a {}
expect delays /a 1s 2s
fail /b error
expect attempts /b 1
expect run failed error
