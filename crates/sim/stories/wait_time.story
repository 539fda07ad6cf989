# Waits for a duration, an instant and a cron pattern are durable and end on time, also after a crash; 0s and an
# instant in the past end at once.
---
workflow: { id: waits, name: Waits }
config: { timeout: none, parameters: { when: { type: string } } }
stages:
  - { id: nap, type: wait, wait: { for: 10m } }
  - { id: none, type: wait, wait: { for: 0s } }
  - { id: past, type: wait, wait: { until: "2020-01-01T00:00:00Z" } }
  - { id: later, type: wait, wait: { until: "${{ parameters.when }}" } }
  - { id: morning, type: wait, wait: { cron: "30 9 * * 5" } }
---
start {"when":"2026-01-01T02:00:00+01:00"}
expect /none done {"value":null}
expect /past done
expect /nap waiting
wait 9m
crash
wait 59s
expect /nap waiting
wait 1s
expect /nap done
wait 49m
expect /later waiting
wait 1m
expect /later done
# The first of January 2026 is a Thursday.
wait 32h
expect /morning waiting
wait 30m
expect /morning done
expect run done
