# A cancel aborts all running steps. A step that does not report within ten seconds is abandoned, and its late
# report is refused. Steps between two attempts, waits and gates end at once.
---
workflow: { id: stop, name: Stop }
stages:
  - { id: a, type: task, task: t }
  - { id: b, type: task, task: t }
  - { id: c, type: gate, gate: { timeout: none } }
  - { id: d, type: wait, wait: { signal: go } }
  - { id: e, depends_on: [a], type: task, task: t }
---
start
fail /b error
expect /b backoff
cancel
expect jobs /a (aborted)
expect /b cancelled
expect /c cancelled
expect /d cancelled
expect /e cancelled
wait 9s
expect run running
crash
wait 10s
expect run cancelled enough
refused done /a {}
