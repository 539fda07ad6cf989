# timeout_secs of a DCC-MCP scope limits all of it. A step that does not report within ten seconds is abandoned.
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
expect jobs /each[1]/work (aborted)
wait 10s
expect abandoned /each[1]/work
expect /each failed timeout
expect run failed timeout
refused done /each[1]/work {}
