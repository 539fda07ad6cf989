# Each completed round and item is undone by itself, the last one first.
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
        - { id: put, type: task, task: put, input: "${{ undo.output.t }}" }
  - id: again
    depends_on: [each]
    type: loop
    loop:
      until: stages.book.outputs.ok
      max: 5
      stages:
        - { id: book, type: task, task: book, compensate: unbook }
        - { id: unbook, type: task, task: unbook, input: "${{ undo.output.n }}" }
  - { id: end, depends_on: [again], type: task, task: end }
---
start
done /each[1]/take {"t":2}
done /each[0]/take {"t":1}
done /again[0]/book {"ok":false,"n":10}
done /again[1]/book {"ok":true,"n":11}
fail /end error "the end"
expect jobs /again[1]/book/unbook
expect input /again[1]/book/unbook 11
done /again[1]/book/unbook {}
expect input /again[0]/book/unbook 10
crash
done /again[0]/book/unbook {}
expect input /each[0]/take/put 1
done /each[0]/take/put {}
expect input /each[1]/take/put 2
done /each[1]/take/put {}
expect run failed error the end
expect undone some(wholly)
