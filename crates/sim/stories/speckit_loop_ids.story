# In a loop, every round updates the plain id of a step. The result of the loop is that of Spec Kit, as it was on
# entry.
--- speckit
schema_version: "1.0"
workflow: {id: loops, name: Loops, version: "1.0.0"}
steps:
  - id: loop
    type: while
    condition: "{{ steps.body.output.stdout != 'stop' }}"
    max_iterations: 5
    steps:
      - {id: body, type: shell, run: "echo {{ steps.body.output.stdout }}"}
  - {id: after, type: shell, run: "echo {{ steps.body.output.stdout }} {{ steps.loop.output.condition_result }} {{ steps.loop.output.max_iterations }} {{ steps.loop.output.loop_type }}"}
---
start
expect input /loop[0]/body "echo "
done /loop[0]/body {"exit_code":0,"stdout":"one","stderr":""}
expect input /loop[1]/body "echo one"
done /loop[1]/body {"exit_code":0,"stdout":"two","stderr":""}
crash
done /loop[2]/body {"exit_code":0,"stdout":"stop","stderr":""}
expect input /after "echo stop True 5 while"
done /after {"exit_code":0,"stdout":"","stderr":""}
expect run done
