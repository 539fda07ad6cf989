# A crash during the delay between two rounds neither shortens nor lengthens it.
---
workflow: { id: loops, name: Loops }
stages:
  - id: poll
    type: loop
    loop:
      until: stages.ask.outputs.ready
      max: 10
      delay: 10m
      stages: [{ id: ask, type: task, task: ask }]
---
start
done /poll[0]/ask {"ready":false}
expect jobs
wait 4m
crash
wait 5m
expect jobs
wait 1m
expect jobs /poll[1]/ask
done /poll[1]/ask {"ready":true}
expect run done
