# D41: timeout_secs of a dcc scope bounds the whole. What does not answer within ten seconds is given up.
--- dcc
name: bounded
steps:
  - id: each
    kind: foreach
    items: $.inputs.rows
    timeout_secs: 60
    steps: [{id: work, tool: work}]
---
start {"rows":[1,2]}
wait 30s
done /each[0]/work {}
wait 30s
expect jobs /each[1]/work (told to stop)
wait 10s
expect abandoned /each[1]/work
expect /each failed timeout
expect run failed timeout
refused done /each[1]/work {}
