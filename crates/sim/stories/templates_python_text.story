# Spec Kit uses the text forms of Python.
--- speckit
schema_version: "1.0"
workflow: {id: shapes, name: Shapes, version: "1.0.0"}
inputs: {yes: {type: boolean, default: true}}
steps:
  - {id: a, type: shell, run: ./a, output_format: json}
  - {id: b, type: shell, run: "echo {{ steps.a.output.data.list }} {{ inputs.yes }} {{ steps.a.output.data.none }}|"}
---
start {"yes":true}
done /a {"exit_code":0,"stdout":"","stderr":"","data":{"list":["x",null,1.0]}}
expect input /b "echo ['x', None, 1.0] True |"
done /b {"exit_code":0,"stdout":"","stderr":""}
expect run done
