# foreach iterates over a list, `concurrency` items at once; over nothing for null, and once for any other value.
--- dcc
name: each
steps:
  - {id: list, tool: list}
  - id: files
    kind: foreach
    items: $.steps.list.output.files
    as: file
    concurrency: 2
    steps:
      - {id: open, tool: open, args: {path: "{{file.path}}"}}
      - {id: close, tool: close, args: {was: "{{steps.open.output.h}}"}}
  - {id: none, kind: foreach, items: $.steps.list.output.nothing, steps: [{id: never, tool: never}]}
  - {id: one, kind: foreach, items: $.steps.list.output.count, steps: [{id: only, tool: only, args: {it: "{{item}}"}}]}
---
start
done /list {"files":[{"path":"a"},{"path":"b"},{"path":"c"}],"count":5}
expect jobs /files[0]/open /files[1]/open
expect input /files[1]/open {"path":"b"}
done /files[1]/open {"h":2}
done /files[0]/open {"h":1}
expect input /files[0]/close {"was":1}
expect input /files[1]/close {"was":2}
crash
done /files[0]/close {}
expect jobs /files[1]/close /files[2]/open
done /files[1]/close {}
done /files[2]/open {"h":3}
done /files[2]/close {}
expect nothing /none[0]
expect input /one[0]/only {"it":5}
done /one[0]/only {}
expect run done
