# A message is published without a recipient: if no step waits for it, it is dropped, and only a delivered one
# counts.
---
workflow: { id: waits, name: Waits }
stages:
  - { id: a, type: wait, wait: { message: file-arrived } }
---
start
signal file-arrived {"n":1}
expect /a waiting file-arrived
refused deliver /a other {"n":2}
deliver /a file-arrived {"n":3}
expect /a done {"value":{"n":3}}
refused deliver /a file-arrived {"n":4}
expect run done
