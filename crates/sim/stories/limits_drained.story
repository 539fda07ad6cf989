# A step that has only asked for a slot has not begun: when its scope drains, it is canceled, and a later grant is
# refused.
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
