# A branch without an arm for its value is done; a failure in an arm is the failure of the branch.
---
workflow: { id: arms, name: Arms }
config:
  parameters: { n: { type: integer } }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: maybe, type: branch, branch: { if: parameters.n > 2, then: [{ id: big, type: task, task: big }] } }
  - { id: pick, depends_on: [maybe], type: branch, branch: { switch: parameters.n, cases: { 1: [{ id: one, type: task, task: one }] } } }
  - { id: later, depends_on: [pick], type: task, task: later }
---
start {"n":1}
expect /maybe done
expect jobs /pick/one
fail /pick/one error "one is none"
expect /pick failed error one is none
expect /later cancelled
expect run failed error one is none
