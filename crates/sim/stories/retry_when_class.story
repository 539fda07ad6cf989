# retry.when reads class and exit_code of the failed attempt.
---
workflow: { id: when, name: When }
stages:
  - { id: a, type: task, task: t, error_policy: { retry: { max_attempts: 5, initial_interval: 1s, when: class == 'transient' } } }
---
start
fail /a transient
wait 1s
fail /a transient
wait 2s
fail /a error "done with it"
expect attempts /a 3
expect run failed error done with it
