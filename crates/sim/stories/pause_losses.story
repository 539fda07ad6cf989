# Delivering a lost attempt again counts as starting it, so it waits while the run is paused. A cancel ends a pause.
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
