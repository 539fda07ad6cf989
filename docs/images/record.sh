#!/bin/sh
# Records the workflow of the README as a moving picture: record.sh OUT.svg. The run is killed in the middle and resumed.
# `windlass` and `record` must be on the PATH.
set -eu

if [ "$1" != --session ]; then
    out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    images=$(cd "$(dirname "$0")" && pwd)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    awk '/^```yaml release.yaml/ { on = 1; next } /^```/ { on = 0 } on' "$images/../../README.md" >"$folder/release.yaml"
    cd "$folder"
    record "$out" --when 'a approve' a --when 'why?' 'looks good\r' -- "$images/record.sh" --session
    exit
fi

say() {
    printf '\n$ '
    sleep 0.7
    printf '%s\n' "$1"
    sleep 0.4
}

say 'windlass run release.yaml --run-id first'
(
    until [ -s pid ]; do sleep 0.1; done
    sleep 3.6
    kill -9 "$(cat pid)"
) &
# The shell's own word about it would be printed over the last line of the view.
exec 3>&2 2>/dev/null
sh -c 'echo $$ >pid; exec windlass run release.yaml --run-id first 2>&3' || true
exec 2>&3
# The program could not restore the terminal.
stty sane
printf '\033[?25h\n\nKilled\n'
say '# that was kill -9, from another terminal'
sleep 1
say 'windlass resume first'
windlass resume first
sleep 1
