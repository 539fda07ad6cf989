# Dependents of a stage that its own condition skipped may start; dependents of a skipped gate are skipped,
# transitively. The outputs of a skipped stage are their defaults, or null.
---
workflow: { id: skips, name: Skips }
config:
  parameters: { deep: { type: boolean, default: false } }
stages:
  - id: scan
    condition: parameters.deep
    type: task
    task: scan
    outputs:
      found: { type: integer, default: 7 }
      note: { type: string, required: false }
  - { id: report, depends_on: [scan], type: task, task: report, input: ["${{ stages.scan.outputs.found }}", "${{ stages.scan.outputs.note }}", "${{ stages.scan.status }}"] }
  - id: ask
    condition: parameters.deep
    type: gate
    gate: { timeout: 1h }
  - { id: publish, depends_on: [ask], type: task, task: publish }
  - { id: tell, depends_on: [publish], type: task, task: tell }
---
start {"deep":false}
expect /scan skipped condition_false
expect jobs /report
expect input /report [7,null,"skipped"]
expect /ask skipped condition_false
expect /publish skipped gate_skipped ask
expect /tell skipped gate_skipped
done /report {}
expect run done
expect failures false
