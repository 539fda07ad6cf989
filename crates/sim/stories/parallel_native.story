# The same in the native dialect: a branch that is a list is a block; a branch with the policy `continue` does not
# fail the stage.
---
workflow: { id: par, name: Par }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: checks
    type: parallel
    parallel:
      branches:
        - { id: lint, type: task, task: lint, error_policy: { on_failure: continue } }
        - - { id: build, type: task, task: build }
          - { id: test, depends_on: [build], type: task, task: test, outputs: { ok: { type: boolean } } }
      on_failure: abort
    outputs:
      lint: { type: any, source: "${{ stages.lint.status }}" }
  - { id: sum, depends_on: [checks], type: task, task: sum, input: "${{ stages.checks.outputs.lint }}" }
---
start
fail /checks/lint error
expect run running
crash
expect jobs /checks/checks/build
done /checks/checks/build {}
done /checks/checks/test {"ok":true}
expect input /sum "failed"
done /sum {}
expect run done
expect failures true
