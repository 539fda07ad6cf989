# Every later delivery, attempt and round of a step receives its notes, and no other step does.
---
workflow: { id: notes, name: Notes }
stages:
  - id: a
    type: task
    task: a
    rounds: { max: 3 }
    error_policy: { retry: { max_attempts: 2, initial_interval: 1s } }
  - { id: b, depends_on: [a], type: task, task: b }
---
start
expect notes /a {}
note /a turn {"n":1}
note /a session "s1"
crash
expect notes /a {"turn":{"n":1},"session":"s1"}
note /a turn {"n":2}
fail /a error
wait 1s
expect notes /a {"turn":{"n":2},"session":"s1"}
continue /a "more"
expect notes /a {"turn":{"n":2},"session":"s1"}
refused note /a@1 turn 9
done /a {}
expect notes /b {}
done /b {}
expect run done
