#!/bin/sh
# Runs the example in real time, with mock responses from live.yaml, and suggests what to look at next. On a terminal you
# decide at the gate; otherwise a second command does.
set -eu

windlass=${WINDLASS:-windlass}
here=$(dirname "$0")
run="feature-$(date +%m%d-%H%M%S)"
script="$here/live.yaml"

say() {
    printf '\n$ windlass'
    for word in "$@"; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$windlass" "$@"
}

if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then
    say run "$here" -p feature_name=auth --script "$script" --by miethe --run-id "$run"
else
    status=0
    say run "$here" -p feature_name=auth --script "$script" --run-id "$run" </dev/null || status=$?
    [ "$status" = 3 ] || { echo "the run should wait at its gate, but exited with status $status" >&2; exit 1; }
    say approve "$run" deploy-approval --by miethe --reason 'looks good'
    say resume "$run" --script "$script" </dev/null
fi

echo
echo 'Next, try:'
echo "  the steps:   $windlass show $run"
echo "  the output:  $windlass logs $run"
echo "  the events:  $windlass events $run"
echo "  the graph:   $windlass graph $here"
echo "  all runs:    $windlass runs"
