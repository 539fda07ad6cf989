# A step whose every delivery is lost fails with class `lost`.
--- dagnats
{"name": "losses", "steps": [{"id": "a", "task": "a"}]}
---
start
lost /a
crash
lost /a
lost /a
expect jobs /a
lost /a
expect run failed lost
