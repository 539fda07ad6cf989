# do-while is evaluated after each round; reaching max_iterations is not a failure.
--- speckit
schema_version: "1.0"
workflow: {id: loops, name: Loops, version: "1.0.0"}
steps:
  - id: loop
    type: do-while
    condition: "{{ steps.body.output.exit_code == 0 }}"
    max_iterations: 2
    steps: [{id: body, type: shell, run: "true"}]
  - {id: after, type: shell, run: "echo {{ steps.loop.output.loop_type }} {{ steps.loop.output.max_iterations }}"}
---
start
done /loop[0]/body {"exit_code":0,"stdout":"","stderr":""}
done /loop[1]/body {"exit_code":0,"stdout":"","stderr":""}
expect nothing /loop[2]
expect input /after "echo do-while 2"
done /after {"exit_code":0,"stdout":"","stderr":""}
expect run done
