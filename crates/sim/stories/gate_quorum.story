# Two of three must approve, each counts once, and the person who started the run does not count; one rejection is
# enough.
---
workflow: { id: gates, name: Gates }
stages:
  - { id: ask, type: gate, gate: { approvers: [ann, dana, lee], quorum: 2, self_approval: false, timeout: 1h } }
  - { id: once-more, depends_on: [ask], type: gate, gate: { approvers: [ann, dana, lee], quorum: 2, timeout: 1h } }
---
start {} by ann
refused approve /ask by ann
refused reject /ask by ann
approve /ask by dana
expect /ask asking
refused approve /ask by dana
crash
approve /ask by lee
expect /ask done
approve /once-more by ann
reject /once-more "not today" by dana
expect /once-more failed gate_rejected not today
expect run failed gate_rejected not today
