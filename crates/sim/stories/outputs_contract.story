# Declared outputs have defaults and types; a violation is a failed attempt that is retried. The outputs of the run
# are checked as well.
---
workflow: { id: out, name: Out }
error_policy: { default_retry: { max_attempts: 2, initial_interval: 1s } }
stages:
  - id: a
    type: task
    task: t
    outputs:
      n: { type: integer }
      tags: { type: "array<string>", required: false, default: [] }
      note: { type: string, required: false }
outputs:
  n: { type: integer, source: "${{ stages.a.outputs.n }}" }
  tags: { type: "array<string>", source: "${{ stages.a.outputs.tags }}" }
---
start
done /a {"n":"three"}
expect /a backoff
wait 1s
done /a {"n":3}
expect /a done {"n":3,"tags":[],"note":null}
expect run done {"n":3,"tags":[]}
