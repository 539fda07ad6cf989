# `finally` runs after a stage regardless of its outcome, and can read it. The stage has the outcome of its body,
# unless only `finally` failed.
---
workflow: { id: fin, name: Fin }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: good, type: task, task: t, error_policy: { on_failure: continue }, finally: [{ id: a, type: task, task: t, input: "${{ stages.good.status }}" }] }
  - { id: bad, type: task, task: t, error_policy: { on_failure: continue }, finally: [{ id: b, type: task, task: t, input: "${{ stages.bad.status }}" }] }
  - { id: worse, type: task, task: t, error_policy: { on_failure: continue }, finally: [{ id: c, type: task, task: t }] }
  - { id: both, type: task, task: t, error_policy: { on_failure: continue }, finally: [{ id: d, type: task, task: t }] }
---
start
expect jobs /bad/bad /both/both /good/good /worse/worse
done /good/good {}
fail /bad/bad error "bad"
done /worse/worse {}
fail /both/both error "first"
expect jobs /bad/b /both/d /good/a /worse/c
expect input /good/a "success"
expect input /bad/b "failed"
crash
done /good/a {}
done /bad/b {}
fail /worse/c error "unclean"
fail /both/d error "second"
expect /good done {}
expect /bad failed error bad
expect /worse failed error unclean
expect /both failed error first
expect run done
