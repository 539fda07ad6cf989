# `concurrency: N` limits the stages of one run, and so does max_steps of DagNats. A stage between two attempts
# keeps its slot; a sleep needs none.
--- dagnats
{"name": "limits", "concurrency": {"max_steps": 2}, "steps": [
  {"id": "a", "task": "t", "retry": {"max_attempts": 1, "initial_delay": "10s"}},
  {"id": "b", "task": "t"}, {"id": "c", "task": "t"}, {"id": "nap", "type": "sleep", "config": {"duration": "1s"}}
]}
---
start
expect jobs /a /b
expect /nap waiting
fail /a error
expect jobs /b
wait 10s
expect jobs /a /b
done /b 1
expect jobs /a /c
done /a 1
done /c 1
expect run done
