# A failed leaf in a loop in a fan-out is reopened with new attempts; everything else that has settled stays and
# does not run again. New inputs apply to expressions that have not been evaluated yet.
---
workflow: { id: again, name: Again }
config: { parameters: { v: { type: integer, default: 1 } } }
error_policy: { default_retry: { max_attempts: 2, initial_interval: 1s } }
stages:
  - { id: before, type: task, task: t, input: "${{ parameters.v }}" }
  - id: each
    depends_on: [before]
    type: fan_out
    fan_out:
      source: [x, y]
      concurrency: 1
      stages:
        - id: loop
          type: loop
          loop:
            until: stages.b.outputs.ok
            max: 3
            stages:
              - { id: a, type: task, task: t }
              - { id: b, depends_on: [a], type: task, task: t, input: "${{ parameters.v }}" }
  - { id: after, depends_on: [each], type: task, task: t, input: "${{ parameters.v }}" }
---
start {"v":1}
refused reopen
done /before {}
done /each[0]/loop[0]/a {}
done /each[0]/loop[0]/b {"ok":false}
done /each[0]/loop[1]/a {}
fail /each[0]/loop[1]/b error
wait 1s
fail /each[0]/loop[1]/b error "twice"
expect /after cancelled
expect run failed error twice
crash
reopen {"v":2}
expect run running
expect jobs /each[0]/loop[1]/b
expect input /each[0]/loop[1]/b 2
expect /each[0]/loop[1]/a done {}
expect /each[0]/loop[0]/b done
fail /each[0]/loop[1]/b error
wait 1s
done /each[0]/loop[1]/b {"ok":true}
expect jobs /each[1]/loop[0]/a
done /each[1]/loop[0]/a {}
done /each[1]/loop[0]/b {"ok":true}
expect input /after 2
done /after {}
expect run done
refused reopen
