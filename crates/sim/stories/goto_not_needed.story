# A step that only takes over never runs when nothing fails, and keeps nobody waiting.
---
workflow: { id: rescue, name: Rescue }
stages:
  - { id: fetch, type: task, task: fetch, error_policy: { on_failure: { goto: use-cache } } }
  - { id: use-cache, type: task, task: cache }
  - { id: unpack, depends_on: [fetch], type: task, task: unpack }
---
start
done /fetch {}
expect jobs /unpack
done /unpack {}
expect /use-cache dormant
expect run done
