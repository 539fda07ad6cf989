# A single expression keeps the type of its value. With text around it, the result is text: null is empty, lists and
# objects are compact JSON.
---
workflow: { id: shapes, name: Shapes }
stages:
  - { id: a, type: task, task: a }
  - id: b
    depends_on: [a]
    type: task
    task: b
    input:
      alone: "${{ stages.a.outputs.list }}"
      text: "<${{ stages.a.outputs.list }}|${{ stages.a.outputs.none }}|${{ stages.a.outputs.yes }}|${{ stages.a.outputs.half }}>"
---
start
done /a {"list":[1,null,{"k":"v"}],"yes":true,"half":0.5}
expect input /b {"alone":[1,null,{"k":"v"}],"text":"<[1,null,{\"k\":\"v\"}]||true|0.5>"}
done /b {}
expect run done
