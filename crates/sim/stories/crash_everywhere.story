# A crash in the middle of a loop in a fan-out in a parallel step: every scope continues where it was, and no
# completed step runs again.
---
workflow: { id: deep, name: Deep }
stages:
  - id: par
    type: parallel
    parallel:
      branches:
        - id: each
          type: fan_out
          fan_out:
            source: [a, b]
            stages:
              - id: loop
                type: loop
                loop:
                  until: stages.pick.outputs.branch == 'then'
                  max: 4
                  delay: 1m
                  stages:
                    - { id: x, type: task, task: t, input: "${{ loops.each.item }}${{ index }}" }
                    - id: pick
                      depends_on: [x]
                      type: branch
                      branch: { if: stages.x.outputs.ok, then: [{ id: yes, type: task, task: t }], else: [{ id: no, type: wait, wait: { for: 10s } }] }
        - { id: ask, type: gate, gate: { timeout: none } }
---
start
crash
done /par/each[0]/loop[0]/x {"ok":false}
expect input /par/each[1]/loop[0]/x "b0"
done /par/each[1]/loop[0]/x {"ok":true}
crash
wait 10s
crash
wait 1m
expect input /par/each[0]/loop[1]/x "a1"
done /par/each[0]/loop[1]/x {"ok":true}
crash
expect jobs /par/each[0]/loop[1]/pick/yes /par/each[1]/loop[0]/pick/yes
done /par/each[0]/loop[1]/pick/yes {}
approve /par/ask
done /par/each[1]/loop[0]/pick/yes {}
expect run done
