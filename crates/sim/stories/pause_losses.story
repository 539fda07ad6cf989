# D33: to deliver a lost attempt again is to start something: it waits while the run is paused. A cancel ends a pause.
---
workflow: { id: pauses, name: Pauses }
stages:
  - { id: a, type: task, task: t }
---
start
pause
lost /a
expect jobs
resume
expect jobs /a
pause
cancel
stopped /a
expect run cancelled enough
