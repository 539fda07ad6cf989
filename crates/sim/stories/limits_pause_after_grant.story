# A step that is granted its slot while the run is paused is dispatched when the run resumes.
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
