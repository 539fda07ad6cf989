# A workflow that calls itself, directly or through others, or more than 16 levels deep, does not start; the call
# fails.
---
workflow: { id: ring, name: Ring }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: again, type: workflow, workflow: ring, with: { n: 1 } }
---
refused start {} under outer ring other
refused start {} under ring
refused start {} under a b c d e f g h i j k l m n o p q
start {} under outer other
expect jobs /again
expect input /again {"n":1}
fail /again error "a ring"
expect run failed error a ring
