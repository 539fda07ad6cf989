#!/bin/sh
# Examines this repository and says where to look afterwards. On a terminal you decide at the gate; otherwise the gate
# approves itself after five seconds.
set -eu

cd "$(dirname "$0")/../.."
windlass=${WINDLASS:-windlass}
run="examine-$(date +%m%d-%H%M%S)"

set -- run examples/examine-repository --run-id "$run"
if ! { [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; }; then
    set -- "$@" --overrides examples/examine-repository/unattended.yaml
fi
printf '$ windlass %s\n' "$*"
"$windlass" "$@"

echo
echo 'The report is in target/report.md. Next, try:'
echo "  the steps:   $windlass show $run"
echo "  the output:  $windlass logs $run"
echo "  the events:  $windlass events $run"
echo "  all runs:    $windlass runs"
