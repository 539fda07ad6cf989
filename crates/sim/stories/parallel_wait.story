# Without a failure policy, all branches finish; then the step fails with the first failed branch in file order. A
# branch of several steps runs them one after the other.
--- dcc
name: branches
steps:
  - id: checks
    kind: parallel
    branches:
      - [{id: naming, tool: naming}, {id: report, tool: report, args: {n: "{{steps.naming.output}}"}}]
      - {id: geometry, tool: geometry}
      - {id: colours, tool: colours}
  - {id: gather, tool: gather}
---
start
expect jobs /checks/checks/naming /checks/colours /checks/geometry
fail /checks/colours error "too red"
done /checks/checks/naming 1
expect jobs /checks/checks/report /checks/geometry
expect input /checks/checks/report {"n":1}
fail /checks/geometry error "no faces"
done /checks/checks/report {}
expect /checks failed error no faces
expect run failed error no faces
