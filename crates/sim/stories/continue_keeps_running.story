# After a failure with `continue`, dependents run with the defaults, and the run succeeds with `has_failures`.
---
workflow: { id: goes-on, name: Goes on }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: lint
    type: task
    task: lint
    error_policy: { on_failure: continue }
    outputs:
      count: { type: integer, default: -1 }
      text: { type: string, required: false }
  - { id: report, depends_on: [lint], type: task, task: report, input: ["${{ stages.lint.outputs.count }}", "${{ stages.lint.outputs.text }}", "${{ stages.lint.status }}"] }
---
start
fail /lint error
expect input /report [-1,null,"failed"]
done /report {}
expect run done
expect failures true
