# A cancel of a path stops what is below it only: the step is cancelled, those that need it are skipped, and the rest goes on.
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
expect jobs /other /part/a (told to stop)
stopped /part/a
expect /part cancelled
expect /part/b cancelled
expect /after skipped run_cancelled part
done /other {}
expect /other done {}
