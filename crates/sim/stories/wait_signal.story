# A signal to the run that arrives before its wait is stored, and the first matching wait takes it, once. A signal
# that does not match is left for another wait; a repeated signal changes nothing.
---
workflow: { id: waits, name: Waits }
stages:
  - { id: prepare, type: task, task: prepare }
  - { id: first, depends_on: [prepare], type: wait, wait: { signal: paid, match: { order: 7 } } }
  - { id: second, depends_on: [first], type: wait, wait: { signal: paid } }
  - { id: third, depends_on: [second], type: wait, wait: { signal: paid } }
outputs:
  all: { type: any, source: ["${{ stages.first.outputs.value.n }}", "${{ stages.second.outputs.value.n }}", "${{ stages.third.outputs.value.n }}"] }
---
start
signal paid {"order":6,"n":1}
signal paid {"order":7,"n":2}
signal other {"order":7,"n":3}
crash
done /prepare {}
expect /first done {"value":{"order":7,"n":2}}
expect /second done {"value":{"order":6,"n":1}}
expect /third waiting paid
signal paid {"n":4}
repeat paid {"n":4}
expect run done {"all":[2,1,4]}
