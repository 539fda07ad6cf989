# Which classes are retried: those named, those not excluded, and never those for which a retry cannot help.
---
workflow: { id: classes, name: Classes }
error_policy:
  on_stage_failure: continue
  default_retry: { max_attempts: 3, initial_interval: 1s }
stages:
  - { id: only, type: task, task: t, error_policy: { retry: { retryable_errors: [transient] } } }
  - { id: never, type: task, task: t, error_policy: { retry: { non_retryable_errors: [merge_conflict] } } }
  - { id: auth, type: task, task: t }
  - { id: named, type: task, task: t, error_policy: { retry: { retryable_errors: [auth_failure] } } }
  - { id: spent, type: task, task: t }
  - { id: when, type: task, task: t, error_policy: { retry: { when: "attempt < 2 && !contains(message, 'fatal')" } } }
  - { id: fatal, type: task, task: t, error_policy: { retry: { when: "attempt < 2 && !contains(message, 'fatal')" } } }
---
start
fail /only error
expect /only failed error
fail /never merge_conflict
expect /never failed merge_conflict
fail /auth auth_failure
expect /auth failed auth_failure
fail /named auth_failure
expect /named backoff
fail /spent budget_exceeded
expect /spent failed budget_exceeded
fail /when error "oops"
expect /when backoff
fail /fatal error "fatal: no"
expect /fatal failed error
wait 1s
expect jobs /named /when
fail /when error "oops"
expect /when failed error
done /named {}
expect run done
