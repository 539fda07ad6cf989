# All combinations of the axes: the names in alphabetical order, the last one varies fastest. The template inherits
# the retry of the stage.
---
workflow: { id: fan, name: Fan }
stages:
  - id: build
    type: fan_out
    error_policy: { retry: { max_attempts: 2, initial_interval: 7s } }
    fan_out:
      matrix: { os: [linux, mac], arch: [arm, x86] }
      concurrency: 1
      stage_template: { id: make, type: task, task: make, input: "${{ item.arch }} ${{ item.os }} ${{ index }}" }
---
start
expect input /build[0]/make "arm linux 0"
fail /build[0]/make error
expect delays /build[0]/make 7s
wait 7s
done /build[0]/make {}
expect input /build[1]/make "arm mac 1"
done /build[1]/make {}
expect input /build[2]/make "x86 linux 2"
done /build[2]/make {}
expect input /build[3]/make "x86 mac 3"
done /build[3]/make {}
expect run done
