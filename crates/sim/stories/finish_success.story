# An early end from a nested step: nothing new starts, running steps finish, and the run has the result of the
# finish step.
---
workflow: { id: fin, name: Fin }
stages:
  - { id: slow, type: task, task: t }
  - { id: never, depends_on: [slow], type: task, task: t }
  - id: check
    type: block
    stages:
      - { id: look, type: task, task: t }
      - { id: stop, depends_on: [look], condition: "stages.look.outputs.n == 0", type: finish, finish: { outputs: { reason: "n is ${{ stages.look.outputs.n }}" } } }
      - { id: more, depends_on: [stop], type: task, task: t }
outputs:
  reason: { type: string, source: "x" }
---
start
done /check/look {"n":0}
expect /check/stop done
expect jobs /slow
done /slow {}
expect /never cancelled
expect /check/more cancelled
expect run done {"reason":"n is 0"}
