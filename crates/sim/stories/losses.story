# A loss does not count as an attempt: the same attempt is delivered up to five times. Then it fails with class
# `lost`, and the next attempt follows as after any failure. A report of an older delivery is refused.
---
workflow: { id: losses, name: Losses }
error_policy: { default_retry: { max_attempts: 2, initial_interval: 1s } }
stages:
  - { id: a, type: task, task: a }
---
start
lost /a
expect jobs /a
refused done /a@1 "late"
lost /a
lost /a
lost /a
expect attempts /a 1
expect jobs /a
lost /a
expect /a backoff
wait 1s
expect attempts /a 2
lost /a
done /a 1
expect run done
