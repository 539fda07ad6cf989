# A timer for the same instant as the timeout of the run is too late.
---
workflow: { id: times, name: Times }
config: { timeout: 1h }
stages:
  - { id: nap, type: wait, wait: { for: 1h } }
---
start
wait 1h
expect /nap cancelled
expect run failed timeout
