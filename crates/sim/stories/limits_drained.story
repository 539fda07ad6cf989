# What has only asked has not begun: when its scope is drained it is cancelled, and what it is granted then is not taken.
---
workflow: { id: wf, name: Wf }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: task, task: t }
  - { id: b, type: task, task: paint, task_concurrency: 1 }
---
start
expect jobs /a /b (asks for task:paint)
fail /a error
refused grant /b
expect /b cancelled
expect run failed
