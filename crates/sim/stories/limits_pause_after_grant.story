# What is granted while the run is paused is handed out when it goes on.
---
workflow: { id: wf, name: Wf }
stages:
  - { id: a, type: task, task: paint, task_concurrency: 1 }
---
start
pause
grant /a
expect jobs
resume
expect jobs /a
done /a {}
expect run done
