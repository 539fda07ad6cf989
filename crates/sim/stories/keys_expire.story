# A step whose key has a result uses it at once, within the time to live that the owner set; after that, it does the
# work again.
---
workflow: { id: keys, name: Keys }
config: { timeout: none }
stages:
  - { id: a, type: task, task: t, idempotency: { key: "k", ttl: 1h } }
  - { id: nap, depends_on: [a], type: wait, wait: { for: 50m } }
  - { id: b, depends_on: [nap], type: task, task: t, idempotency: { key: "k", ttl: 10h } }
  - { id: nap-again, depends_on: [b], type: wait, wait: { for: 20m } }
  - { id: c, depends_on: [nap-again], type: task, task: t, idempotency: { key: "k" } }
---
start
done /a 1
wait 50m
expect /b done 1
wait 20m
expect jobs /c
done /c 2
expect run done
