# Jitter changes a delay by a share of it: above it, or around it. It is drawn from the seed of the run, so that a
# replay agrees.
---
workflow: { id: jitter, name: Jitter }
error_policy: { on_stage_failure: continue, default_retry: { max_attempts: 3, backoff: fixed, initial_interval: 100s, jitter: 0.2 } }
stages:
  - { id: above, type: task, task: t }
  - { id: around, type: task, task: t, error_policy: { retry: { spread: around } } }
---
start
fail /above error
fail /around error
crash
expect delays /above 100s..120s
expect delays /around 80s..120s
wait 2m
fail /above error
fail /around error
expect delays /above 100s..120s 100s..120s
wait 2m
done /above {}
done /around {}
expect run done
