# The timeout of a scope limits all of it: running steps inside are aborted, others are canceled, and the scope
# fails with timeout. Steps outside are not affected.
---
workflow: { id: times, name: Times }
stages:
  - id: all
    type: block
    error_policy: { timeout: 1m, on_failure: continue }
    stages:
      - { id: a, type: task, task: a, error_policy: { retry: { max_attempts: 5, initial_interval: 1s } } }
      - { id: b, depends_on: [a], type: task, task: b }
      - id: each
        type: fan_out
        fan_out: { source: [1, 2], concurrency: 1, stage_template: { id: c, type: task, task: c } }
  - { id: other, type: task, task: other }
---
start
done /all/each[0]/c {}
wait 1m
expect jobs /all/a (aborted) /all/each[1]/c (aborted) /other
expect /all/b cancelled
fail /all/a error
stopped /all/each[1]/c
expect /all failed timeout
expect jobs /other
done /other {}
expect run done
expect failures true
