# A step that only handles failures never runs when nothing fails, and no step waits for it.
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
