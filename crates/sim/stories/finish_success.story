# An early end from deep inside: nothing new starts, what runs comes to its end, the run has the result that it says.
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
