# Completed steps are undone strictly in reverse order of completion. A failed compensation does not stop the
# others, and the run ends as partly undone.
--- dagnats
{"name": "trip", "steps": [
  {"id": "flight", "task": "book.flight", "compensate": "no-flight"},
  {"id": "hotel", "task": "book.hotel", "depends_on": ["flight"], "compensate": "no-hotel"},
  {"id": "car", "task": "book.car", "depends_on": ["hotel"], "compensate": "no-car"},
  {"id": "pay", "task": "pay", "depends_on": ["car"]},
  {"id": "no-flight", "task": "cancel.flight"},
  {"id": "no-hotel", "task": "cancel.hotel"},
  {"id": "no-car", "task": "cancel.car"}
]}
---
start {"who": "ann"}
expect jobs /flight
expect input /flight {"who":"ann"}
done /flight {"f":1}
done /hotel {"h":2}
done /car {"c":3}
fail /pay non_retriable "no money"
expect jobs /car/no-car
expect input /car/no-car {"original_step":"car","original_output":{"c":3},"trigger_step":"pay","trigger_error":"no money"}
done /car/no-car {}
expect jobs /hotel/no-hotel
fail /hotel/no-hotel non_retriable
expect jobs /flight/no-flight
crash
expect jobs /flight/no-flight
done /flight/no-flight {}
expect run failed non_retriable no money
expect undone some(partly)
refused reopen
