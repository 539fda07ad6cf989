# A compensation in a fan-out or loop reads `item` and `index` of the frame whose step it undoes.
---
workflow: { id: pay, name: Pay }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - id: each
    type: fan_out
    fan_out:
      source: [a, b]
      stages:
        - { id: take, type: task, task: take, input: "${{ item }}", compensate: put }
        - { id: put, type: task, task: put, input: ["${{ undo.output.t }}", "${{ item }}", "${{ index }}"] }
  - { id: end, depends_on: [each], type: task, task: end }
---
start
done /each[1]/take {"t":2}
done /each[0]/take {"t":1}
fail /end error "the end"
expect input /each[0]/take/put [1,"a",0]
done /each[0]/take/put {}
expect input /each[1]/take/put [2,"b",1]
done /each[1]/take/put {}
expect run failed error the end
expect undone some(wholly)
