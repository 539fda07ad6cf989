# A cancel tells everything to stop; what does not answer within ten seconds is given up, its late report is refused. What is between
# two attempts, waits or asks is over at once.
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
expect jobs /a (told to stop)
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
