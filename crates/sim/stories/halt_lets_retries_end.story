# Retries belong to a running attempt, so a halt also lets them finish.
---
workflow: { id: halts, name: Halts }
stages:
  - { id: bad, type: task, task: bad, error_policy: { retry: { max_attempts: 1 } } }
  - { id: flaky, type: task, task: flaky, error_policy: { retry: { max_attempts: 3, initial_interval: 10s } } }
---
start
fail /bad error "no way"
fail /flaky error
expect /flaky backoff
expect run running
wait 10s
expect jobs /flaky
done /flaky 1
expect /flaky done 1
expect run failed error no way
