# The target of a goto runs as a part of the failed step and can read the failure. Then neither the list nor the run
# has failed, dependents of the step are skipped, and other steps continue.
---
workflow: { id: rescue, name: Rescue }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: fetch, type: task, task: fetch, error_policy: { on_failure: { goto: use-cache } } }
  - { id: use-cache, type: task, task: cache, input: "${{ failure.message }}" }
  - { id: unpack, depends_on: [fetch], type: task, task: unpack }
  - { id: other, type: task, task: other }
---
start
expect /use-cache dormant
fail /fetch error "no net"
expect jobs /fetch/use-cache /other
expect input /fetch/use-cache "no net"
crash
done /fetch/use-cache {}
expect recovered /fetch
expect /fetch failed error no net
expect /unpack skipped dependency_failed fetch
done /other {}
expect run done
expect failures true
