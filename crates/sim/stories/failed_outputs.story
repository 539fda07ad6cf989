# After a failure with `continue`, what the work left behind can be read: what a command printed, and declared outputs
# of the right type. Everything else has its default. The outcome is one of four words.
---
workflow: { id: left-behind, name: Left behind }
stages:
  - id: lint
    type: shell
    run: ./lint
    error_policy: { on_failure: continue }
    outputs:
      count: { type: integer, default: -1 }
      text: { type: string, required: false, default: none }
      wrong: { type: integer, required: false }
  - id: ask
    type: task
    task: ask
    error_policy: { on_failure: continue, retry: { max_attempts: 1 } }
    outputs: { good: { type: string }, missing: { type: string } }
  - id: slow
    type: shell
    run: ./slow
    finally: { type: task, task: tell, input: ["${{ stages.slow.outcome }}", "${{ stages.slow.outputs.exit_code }}"] }
    error_policy: { on_failure: continue, timeout: 1m }
  - { id: never, type: task, task: never, condition: "false" }
  - id: report
    depends_on: [lint, ask, slow, never]
    type: task
    task: report
    input:
      lint: "${{ stages.lint.outputs }}"
      ask: "${{ stages.ask.outputs }}"
      slow: "${{ stages.slow.outputs.stdout }}"
      words: ["${{ stages.lint.outcome }}", "${{ stages.ask.outcome }}", "${{ stages.slow.outcome }}", "${{ stages.slow.status }}", "${{ stages.never.outcome }}"]
  - { id: after, depends_on: [report], condition: "stages.lint.outcome == 'failed' && stages.report.outcome == 'success'", type: task, task: after }
---
start
fail /lint error {"exit_code":3,"stdout":"2 problems","stdout_raw":"2 problems\n","stderr":"","count":2,"wrong":"x","other":1}
done /ask {"good":"yes"}
expect /ask failed contract_violation
wait 1m
fail /slow/slow timeout {"exit_code":-1,"stdout":"so far","stderr":""}
expect input /slow/finally ["failed",-1]
done /slow/finally {}
expect input /report {"lint":{"count":2,"text":"none","wrong":null,"exit_code":3,"stdout":"2 problems","stdout_raw":"2 problems\n","stderr":""},"ask":{"good":"yes","missing":null},"slow":"so far","words":["failed","failed","failed","timed_out","skipped"]}
crash
done /report {}
done /after {}
expect run done
expect failures true
