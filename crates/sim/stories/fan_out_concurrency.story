# One frame for each item, at most `concurrency` at once, in order. Results are in the order of items; item and
# index are those of the frame.
---
workflow: { id: fan, name: Fan }
stages:
  - { id: list, type: task, task: list }
  - id: each
    depends_on: [list]
    type: fan_out
    fan_out:
      source: "${{ stages.list.outputs.names }}"
      concurrency: 2
      stage_template: { id: work, type: task, task: work, input: "${{ item }}-${{ index }}", outputs: { len: { type: integer } } }
  - { id: sum, depends_on: [each], type: task, task: sum, input: "${{ stages.each.outputs }}" }
---
start
done /list {"names":["a","b","c"]}
expect jobs /each[0]/work /each[1]/work
expect input /each[1]/work "b-1"
expect nothing /each[2]
done /each[1]/work {"len":2}
expect jobs /each[0]/work /each[2]/work
crash
expect jobs /each[0]/work /each[2]/work
done /each[2]/work {"len":3}
done /each[0]/work {"len":1}
expect input /sum [{"len":1},{"len":2},{"len":3}]
done /sum {}
expect run done
