# `finally` can be a list of stages that depend on each other; all of them run, even after a failure of the body.
---
workflow: { id: fin, name: Fin }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - id: a
    type: task
    task: t
    finally:
      - { id: one, type: task, task: t }
      - { id: two, depends_on: [one], type: task, task: t }
---
start
fail /a/a error "broken"
expect jobs /a/one
done /a/one {}
expect jobs /a/two
done /a/two {}
expect run failed error broken
