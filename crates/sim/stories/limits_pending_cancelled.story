# A run that waits for admission can be canceled like any other, and a later grant is refused.
--- dagnats
{"name": "wf", "version": "1", "timeout": "1m", "concurrency": {"max_runs": 1},
 "steps": [{"id": "a", "task": "t", "type": "normal"}]}
---
start {}
wait 1h
expect run running
cancel
expect run cancelled enough
refused grant /
