# A matrix may have exactly as many combinations as the limit, and not one more.
---
workflow: { id: fan, name: Fan }
error_policy: { on_stage_failure: continue }
stages:
  - id: enough
    type: fan_out
    fan_out:
      matrix: { arch: [arm, x86], os: [linux] }
      max_items: 2
      stage_template: { id: make, type: task, task: make }
  - id: many
    type: fan_out
    fan_out:
      matrix: { arch: [arm, x86], os: [linux, mac] }
      max_items: 3
      stage_template: { id: build, type: task, task: build }
---
start
expect /many failed fan_out_source 4 items are more than the 3 that are allowed
expect jobs /enough[0]/make /enough[1]/make
done /enough[0]/make {}
done /enough[1]/make {}
expect /enough done [{},{}]
expect run done
