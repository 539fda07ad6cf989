# Canceling a path stops only the steps below it: the step is canceled, its dependents are skipped, and the rest
# continues.
---
workflow: { id: stop, name: Stop }
stages:
  - id: part
    type: block
    stages:
      - { id: a, type: task, task: t }
      - { id: b, depends_on: [a], type: task, task: t }
  - { id: after, depends_on: [part], type: task, task: t }
  - { id: other, type: task, task: t }
---
start
cancel /part
expect jobs /other /part/a (aborted)
stopped /part/a
expect /part cancelled
expect /part/b cancelled
expect /after skipped run_cancelled part
done /other {}
expect /other done {}
