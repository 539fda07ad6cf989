# A rejection at a gate sends the work back to an earlier step, with the comment, a limited number of times.
---
workflow: { id: review, name: Review }
stages:
  - id: draft
    type: task
    task: write
    input: "${{ failure.message }}"
  - id: polish
    depends_on: [draft]
    type: task
    task: polish
  - id: sign-off
    depends_on: [polish]
    type: gate
    gate: { timeout: none, on_reject: { back_to: draft, max: 1 } }
  - id: publish
    depends_on: [sign-off]
    type: task
    task: publish
---
start
expect input /draft null
done /draft 1
done /polish 2
expect /sign-off asking
expect /publish pending
reject /sign-off "too long" by dana
expect input /draft#2 "too long"
expect /sign-off dormant
refused approve /sign-off by dana
done /draft#2 3
expect jobs /polish#2
done /polish#2 4
expect /sign-off#2 asking
expect /publish pending
approve /sign-off#2 by dana
expect jobs /publish
done /publish 5
expect run done
