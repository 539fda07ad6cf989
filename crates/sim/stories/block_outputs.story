# A block is one step to the steps around it: it is done when all inner steps have settled, and has the outputs it
# declares.
---
workflow: { id: blocks, name: Blocks }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: prepare
    type: block
    stages:
      - { id: fetch, type: task, task: t }
      - { id: unpack, depends_on: [fetch], type: task, task: t }
    outputs:
      files: { type: any, source: "${{ stages.unpack.outputs.f }}" }
  - { id: use, depends_on: [prepare], type: task, task: t, input: "${{ stages.prepare.outputs }}" }
  - id: more
    depends_on: [use]
    type: block
    stages:
      - { id: x, type: task, task: t, error_policy: { on_failure: skip_dependents } }
      - { id: y, depends_on: [x], type: task, task: t }
      - { id: z, type: task, task: t }
---
start
done /prepare/fetch {}
done /prepare/unpack {"f":2}
expect input /use {"files":2}
done /use {}
fail /more/x error "x broke"
expect /more/y skipped dependency_failed x
expect /more inside
done /more/z {}
expect /more failed error x broke
expect run failed error x broke
