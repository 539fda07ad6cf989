# A guard whose body failed with rollback undoes the steps inside it before `finally`; none of them is undone again.
---
workflow: { id: fin, name: Fin }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: early, type: task, task: t, compensate: un-early }
  - { id: un-early, type: task, task: t }
  - id: all
    depends_on: [early]
    type: block
    stages:
      - { id: in, type: task, task: t, compensate: un-in }
      - { id: un-in, type: task, task: t }
      - { id: boom, depends_on: [in], type: task, task: t }
    finally: [{ id: clean, type: task, task: t }]
---
start
done /early {}
done /all/all/in {}
fail /all/all/boom error "boom"
expect jobs /all/all/in/un-in
done /all/all/in/un-in {}
expect jobs /all/clean
done /all/clean {}
expect jobs /early/un-early
done /early/un-early {}
expect run failed error boom
expect undone some(wholly)
