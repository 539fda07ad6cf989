# A fan-out runs max_concurrency items at once and starts the next when the first of them is done. Inner results are
# private; a fan-in collects the available results.
--- speckit
schema_version: "1.0"
workflow: {id: fan, name: Fan, version: "1.0.0"}
steps:
  - {id: parts, type: shell, run: ./parts, output_format: json}
  - id: build
    type: fan-out
    items: "{{ steps.parts.output.data }}"
    max_concurrency: 2
    step: {id: part, type: shell, run: "make {{ item }}"}
  - id: all
    type: fan-in
    wait_for: [parts, build]
    output:
      count: "{{ fan_in.results | length }}"
      made: "{{ steps.build.output.item_count }}"
  - {id: tell, type: shell, run: "echo {{ steps.all.output.count }} {{ steps.all.output.made }} {{ steps.all.output.results[1].results[2].stdout }} {{ item }}"}
---
start
done /parts {"exit_code":0,"stdout":"","stderr":"","data":["a","b","c"]}
expect jobs /build[0]/part /build[1]/part
expect input /build[1]/part "make b"
done /build[1]/part {"exit_code":0,"stdout":"B","stderr":""}
expect jobs /build[0]/part
crash
done /build[0]/part {"exit_code":0,"stdout":"A","stderr":""}
expect jobs /build[2]/part
done /build[2]/part {"exit_code":0,"stdout":"C","stderr":""}
expect input /tell "echo 2 3 C "
done /tell {"exit_code":0,"stdout":"","stderr":""}
expect run done
