# Only gates and pauses suspend the timeout of the run: a wait for time or a signal counts.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: nap, type: wait, wait: { for: 2h } }
---
start
wait 1h
expect run failed timeout
