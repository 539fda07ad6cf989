# A gate sends the work back at most `max` times; then a rejection is a failure. Losses, crashes and other failures
# do not count.
---
workflow: { id: review, name: Review }
stages:
  - { id: draft, type: task, task: write, input: "${{ failure.message }}" }
  - { id: ask, depends_on: [draft], type: gate, gate: { timeout: none, on_reject: { back_to: draft, max: 2 } } }
  - { id: publish, depends_on: [ask], type: task, task: publish }
---
start
done /draft 1
reject /ask "one"
crash
expect input /draft#2 "one"
done /draft#2 2
reject /ask#2 "two"
expect input /draft#3 "two"
done /draft#3 3
crash
reject /ask#3 "three"
expect jobs
expect /publish cancelled
expect run failed gate_rejected three
