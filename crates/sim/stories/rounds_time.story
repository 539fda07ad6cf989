# The time for all rounds starts with the first round and limits the current round like a timeout; its failure is
# never retried.
---
workflow: { id: rounds, name: Rounds }
error_policy: { on_stage_failure: continue, default_retry: { max_attempts: 3, initial_interval: 1s } }
config: { timeout: none }
stages:
  - { id: a, type: task, task: a, rounds: { max: 10, time: 1m, delay: 20s, warn_at: 1, force_at: 2 }, error_policy: { timeout: none } }
---
start
continue /a 1
wait 20s
expect round /a 1 warn
continue /a 2
wait 20s
expect round /a 2 warn force
wait 20s
expect jobs /a (aborted)
done /a 3
expect /a failed timeout
expect run done
