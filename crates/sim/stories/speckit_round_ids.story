# `loop:step:N` names a round from the second on in the visible map, next to the plain id, which every round
# updates.
--- speckit
schema_version: "1.0"
workflow: {id: loops, name: Loops, version: "1.0.0"}
steps:
  - id: loop
    type: while
    condition: "{{ steps.body.output.stdout != 'stop' }}"
    steps: [{id: body, type: shell, run: ./body}]
  - {id: after, type: shell, run: "echo {{ steps.body.output.stdout }} {{ steps.loop:body:1.output.stdout }} {{ steps.loop:body:2.output.stdout }}"}
---
start
done /loop[0]/body {"exit_code":0,"stdout":"one","stderr":""}
done /loop[1]/body {"exit_code":0,"stdout":"two","stderr":""}
done /loop[2]/body {"exit_code":0,"stdout":"stop","stderr":""}
expect input /after "echo stop two stop"
done /after {"exit_code":0,"stdout":"","stderr":""}
expect run done
