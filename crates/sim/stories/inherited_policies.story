# The tool steps inside a DCC-MCP scope inherit its retry and idempotency if they have none. An inherited key ends
# with the id of the step, so two steps do not share a result.
--- dcc
name: inherited
steps:
  - id: each
    kind: foreach
    items: $.inputs.rows
    retry: {max_attempts: 3, backoff: linear, initial_delay_ms: 1000}
    idempotency_key: "row_{{item.id}}"
    steps:
      - {id: import, tool: import, args: "{{item}}"}
      - {id: check, tool: check, retry: {max_attempts: 1}}
---
start {"rows":[{"id":1},{"id":1},{"id":2}]}
fail /each[0]/import transient
wait 1s
fail /each[0]/import transient
wait 2s
done /each[0]/import {"n":1}
expect delays /each[0]/import 1s 2s
expect jobs /each[0]/check
done /each[0]/check {}
# The second row has the key of the first, so it uses both results.
expect /each[1]/import done {"n":1}
expect /each[1]/check done {}
expect jobs /each[2]/import
done /each[2]/import {}
fail /each[2]/check error
expect attempts /each[2]/check 1
expect run failed error
