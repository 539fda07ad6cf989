# A taken singleton cancels the second run.
--- dagnats
{"name": "wf", "version": "1", "singleton": {"mode": "skip", "key": "k"},
 "steps": [{"id": "a", "task": "t", "type": "normal"}]}
---
start {"k":7}
expect jobs / (asks for singleton:wf:7)
taken / singleton:wf:7
expect run cancelled `singleton:wf:7` is held by run another
