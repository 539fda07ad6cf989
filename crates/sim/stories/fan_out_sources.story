# Without items, the stage is done with no results. A source that is not a list, or has too many items, is a failure
# of class `fan_out_source`.
---
workflow: { id: fan, name: Fan }
error_policy: { on_stage_failure: continue }
stages:
  - { id: list, type: task, task: list }
  - { id: empty, depends_on: [list], type: fan_out, fan_out: { source: "${{ stages.list.outputs.empty }}", stage_template: { id: a, type: task, task: t } } }
  - { id: text, depends_on: [list], type: fan_out, fan_out: { source: "${{ stages.list.outputs.text }}", stage_template: { id: b, type: task, task: t } } }
  - { id: missing, depends_on: [list], type: fan_out, fan_out: { source: "${{ stages.list.outputs.missing }}", stage_template: { id: c, type: task, task: t } } }
  - { id: many, depends_on: [list], type: fan_out, fan_out: { source: "${{ stages.list.outputs.many }}", max_items: 2, stage_template: { id: d, type: task, task: t } } }
  - { id: enough, depends_on: [list], type: fan_out, fan_out: { source: "${{ stages.list.outputs.empty }}", max_items: 2, stage_template: { id: e, type: task, task: t } } }
---
start
done /list {"empty":[],"text":"[1,2]","many":[1,2,3]}
expect /empty done []
expect /text failed fan_out_source
expect /missing failed fan_out_source
expect /many failed fan_out_source
expect /enough done []
expect run done
expect failures true
