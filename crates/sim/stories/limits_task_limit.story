# Attempts that share a limit ask again for each attempt; their timeout starts when they are dispatched.
---
workflow: { id: wf, name: Wf }
config: { timeout: none }
stages:
  - id: a
    type: task
    task: paint
    task_concurrency: 2
    error_policy: { timeout: 1m, retry: { max_attempts: 2, initial_interval: 10s, jitter: 0 } }
---
start
expect jobs /a (asks for task:paint)
expect /a queued
wait 1h
expect /a queued
grant /a
expect jobs /a
lost /a
expect jobs /a
fail /a error
expect /a backoff
wait 10s
expect jobs /a (asks for task:paint)
crash
expect jobs /a (asks for task:paint)
grant /a
wait 1m
expect jobs /a (aborted)
stopped /a
expect /a failed timeout took longer than 1m
expect run failed
