# A reopened run must be admitted again.
--- dagnats
{"name": "wf", "version": "1", "concurrency": {"max_runs": 2}, "steps": [{"id": "a", "task": "t", "type": "normal"}]}
---
start {}
grant /
fail /a error
expect run failed
reopen
expect jobs / (asks for runs:wf)
grant /
done /a 1
expect run done
