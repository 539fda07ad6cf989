# A failure with a delay of its own makes the retry delay longer, never shorter (the default of the native dialect);
# a mapping replaces it, within bounds.
---
workflow: { id: after, name: After }
error_policy: { on_stage_failure: continue }
stages:
  - { id: longer, type: task, task: t, error_policy: { retry: { max_attempts: 3, backoff: fixed, initial_interval: 10s } } }
  - { id: instead, type: task, task: t, error_policy: { retry: { max_attempts: 4, backoff: fixed, initial_interval: 10s, retry_after: { min: 5s, max: 1m } } } }
---
start
fail /longer rate_limit after 2s
fail /instead rate_limit after 2s
expect delays /longer 10s
expect delays /instead 5s
wait 10s
fail /longer rate_limit after 30s
fail /instead rate_limit after 2h
expect delays /longer 10s 30s
expect delays /instead 5s 1m
wait 1m
fail /longer rate_limit
fail /instead rate_limit
expect delays /instead 5s 1m 10s
wait 10s
done /instead {}
expect run done
