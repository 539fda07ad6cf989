# A run that needs a slot waits for it before its first step, holds nothing meanwhile, and can be canceled.
--- dagnats
{"name": "wf", "version": "1", "concurrency": {"max_runs": 2}, "priority": {"key": "p", "rules": {"high": 60}, "default_offset": 0},
 "steps": [{"id": "a", "task": "t", "type": "normal"}]}
---
start {"p":"high"}
expect jobs / (asks for runs:wf)
expect /a pending
crash
expect jobs / (asks for runs:wf)
grant /
expect jobs /a
refused grant /
done /a 1
expect run done
