# `until` stops once it is true, `do_while` continues while it is true; both are evaluated after each round. A round
# can read only the steps in it.
---
workflow: { id: loops, name: Loops }
stages:
  - id: polish
    type: loop
    loop:
      until: stages.check.outputs.ok
      max: 5
      stages:
        - { id: improve, type: task, task: improve }
        - { id: check, depends_on: [improve], type: task, task: check, input: "${{ stages.improve.outputs.v }}" }
  - id: again
    depends_on: [polish]
    type: loop
    loop:
      do_while: stages.step.outputs.more
      max: 5
      stages: [{ id: step, type: task, task: step }]
  - { id: sum, depends_on: [again], type: task, task: sum, input: ["${{ stages.polish.outputs.iterations }}", "${{ stages.polish.outputs.exhausted }}", "${{ stages.again.outputs.iterations }}"] }
---
start
done /polish[0]/improve {"v":1}
expect input /polish[0]/check 1
done /polish[0]/check {"ok":false}
done /polish[1]/improve {"v":2}
expect input /polish[1]/check 2
done /polish[1]/check {"ok":true}
expect nothing /polish[2]
done /again[0]/step {"more":false}
expect nothing /again[1]
expect input /sum [2,false,1]
done /sum {}
expect run done
