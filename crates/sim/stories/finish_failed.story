# An early end as failed; the run cannot be reopened.
---
workflow: { id: fin, name: Fin }
stages:
  - { id: stop, type: finish, finish: { status: failed } }
  - { id: more, depends_on: [stop], type: task, task: t }
---
start
expect jobs
expect run failed error
refused reopen
