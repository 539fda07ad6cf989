# Delays are fixed, linear or exponential, with lower and upper bounds. Between two attempts nothing is outstanding,
# and a crash does not change the time of the next one.
---
workflow: { id: delays, name: Delays }
error_policy: { on_stage_failure: continue }
stages:
  - { id: fixed, type: task, task: t, error_policy: { retry: { max_attempts: 3, backoff: fixed, initial_interval: 10s } } }
  - { id: linear, type: task, task: t, error_policy: { retry: { max_attempts: 4, backoff: linear, initial_interval: 10s, max_interval: 25s } } }
  - { id: grows, type: task, task: t, error_policy: { retry: { max_attempts: 4, initial_interval: 1s, backoff_multiplier: 3, min_interval: 2s, max_interval: 5s } } }
---
start
fail /fixed error
fail /linear error
fail /grows error
expect jobs
wait 5s
expect jobs /grows
crash
expect jobs /grows
fail /grows error
wait 5s
expect jobs /fixed /grows /linear
fail /fixed error
fail /linear error
fail /grows error
wait 20s
fail /fixed error
fail /linear error
fail /grows error
expect delays /fixed 10s 10s
expect delays /linear 10s 20s 25s
expect delays /grows 2s 3s 5s
wait 25s
fail /linear error
expect attempts /linear 4
expect run done
expect failures true
