# At most three agent stages of a run at once unless the file sets another limit; other kinds do not count.
---
workflow: { id: limits, name: Limits }
stages:
  - { id: a, roles: { primary: { artifact: "agent:x" } } }
  - { id: b, roles: { primary: { artifact: "agent:x" } } }
  - { id: c, roles: { primary: { artifact: "agent:x" } } }
  - { id: d, roles: { primary: { artifact: "agent:x" } } }
  - { id: e, type: task, task: t }
  - { id: f, type: task, task: t }
---
start
expect jobs /a /b /c /e /f
done /e {}
expect jobs /a /b /c /f
done /b {}
expect jobs /a /c /d /f
done /a {}
done /c {}
done /d {}
done /f {}
expect run done
