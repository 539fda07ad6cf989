# A DCC-MCP approval without a decision within timeout_secs fails the step; an approval outputs `approved`.
--- dcc
name: asks
steps:
  - {id: first, kind: approve, prompt: "Take {{inputs.x}}?"}
  - {id: use, tool: use, args: "{{steps.first.output}}"}
  - {id: second, kind: approve, timeout_secs: 60}
---
start {"x":3}
expect /first asking "Take 3?"
approve /first "fine"
expect input /use {"approved":true,"reason":"fine"}
done /use {}
wait 1m
expect /second failed
expect run failed
