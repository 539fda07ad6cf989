# During a pause, nothing new is dispatched, running steps finish, and due timers fire when the run resumes.
---
workflow: { id: pauses, name: Pauses }
config: { timeout: none }
stages:
  - { id: a, type: task, task: t, error_policy: { timeout: none } }
  - { id: b, depends_on: [a], type: task, task: t }
  - { id: flaky, type: task, task: t, error_policy: { retry: { max_attempts: 2, initial_interval: 10s } } }
  - { id: nap, type: wait, wait: { for: 1m } }
  - { id: ask, type: gate, gate: { timeout: 1m, on_timeout: auto_approve } }
  - { id: c, depends_on: [nap, ask], type: task, task: t }
---
start
fail /flaky error
pause
refused pause
done /a {}
expect /a done {}
expect jobs
wait 1h
expect jobs
expect /nap waiting
expect /ask asking
crash
expect jobs
resume
refused resume
tick
expect /nap done
expect /ask done
expect jobs /b /c /flaky
done /b {}
done /c {}
done /flaky {}
expect run done
