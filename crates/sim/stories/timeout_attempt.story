# A timeout limits one attempt: it is aborted, and its report is then a failure of class timeout, which is retried.
# If it does not report within ten seconds, it is abandoned, and its late report is refused.
---
workflow: { id: times, name: Times }
stages:
  - { id: a, type: task, task: a, error_policy: { timeout: 1m, retry: { max_attempts: 3, initial_interval: 5s, backoff: fixed } } }
---
start
wait 1m
expect jobs /a (aborted)
done /a "finished after all"
expect /a backoff
wait 5s
expect attempts /a 2
wait 1m
expect jobs /a (aborted)
wait 9s
expect jobs /a (aborted)
wait 1s
refused done /a "too late"
expect /a backoff
wait 5s
expect attempts /a 3
done /a 1
expect run done
