# A run that has not been let in is cancelled like any other, and what is granted afterwards is not taken.
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
