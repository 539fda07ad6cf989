# `on_failure: continue` continues with the other items; a failed item leaves null in the list, and the run has
# failures.
---
workflow: { id: fan, name: Fan }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: each
    type: fan_out
    fan_out:
      source: [a, b, c]
      concurrency: 1
      on_failure: continue
      stages:
        - { id: one, type: task, task: one }
        - { id: two, depends_on: [one], type: task, task: two, input: "${{ stages.one.outputs.v }}" }
  - { id: sum, depends_on: [each], type: task, task: sum, input: "${{ stages.each.outputs }}" }
---
start
done /each[0]/one {"v":1}
expect input /each[0]/two 1
done /each[0]/two {"w":2}
fail /each[1]/one error
expect /each[1]/two cancelled
done /each[2]/one {"v":3}
done /each[2]/two {"w":4}
expect input /sum [{"one":{"v":1},"two":{"w":2}},null,{"one":{"v":3},"two":{"w":4}}]
done /sum {}
expect run done
expect failures true
