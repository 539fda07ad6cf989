# `finally` also runs when the run is canceled.
---
workflow: { id: fin, name: Fin }
stages:
  - { id: a, type: task, task: t, finally: [{ id: clean, type: task, task: t }] }
---
start
cancel
stopped /a/a
expect jobs /a/clean
done /a/clean {}
expect run cancelled enough
