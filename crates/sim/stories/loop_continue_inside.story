# A failure with `continue` inside a round does not end the round: `until` reads the status.
---
workflow: { id: loops, name: Loops }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: polish
    type: loop
    loop:
      until: stages.check.status == 'success'
      max: 3
      stages:
        - { id: check, type: task, task: check, error_policy: { on_failure: continue } }
---
start
fail /polish[0]/check error
fail /polish[1]/check error
done /polish[2]/check {}
expect run done
expect failures true
