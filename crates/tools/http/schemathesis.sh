#!/usr/bin/env bash
# Sends generated requests to every route of a server, as each role, and checks every answer against /openapi.json:
# schemathesis.sh WINDLASS SCHEMATHESIS [EXAMPLES]. The traffic stays on loopback.
set -euo pipefail

windlass=$(realpath "$1")
schemathesis=$(realpath "$2")
examples=${3:-100}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
export WINDLASS_DATA="$work/data"

workflow() {
    printf 'workflow: { id: %s, name: %s }\nstages: [{ id: %s }]\n' "$1" "$1" "$2" >"$1.yaml"
}
workflow build 'say, type: shell, run: echo done'
workflow broken 'say, type: shell, run: exit 3'
workflow release 'sign-off, type: gate, gate: { kind: manual_approval, approvers: [ann] }'
"$windlass" run build.yaml --run-id sample-finished >run.log 2>&1
"$windlass" run broken.yaml --run-id sample-failed >run.log 2>&1 || true
"$windlass" run release.yaml --run-id sample-waiting >run.log 2>&1 || true

"$windlass" serve --listen 127.0.0.1:0 --json >served.jsonl 2>server.log &
server=$!
until [ -s served.jsonl ]; do kill -0 "$server"; sleep 0.1; done
url=$(head -n 1 served.jsonl | python3 -c 'import json, sys; print(json.load(sys.stdin)["url"])')

# positive_data_acceptance is off: a request that fits its schema may still name a run that does not exist.
for role in viewer operator approver author admin worker; do
    token=$("$windlass" tokens create "tester-$role" --role "$role" 2>/dev/null)
    echo "schemathesis as $role"
    "$schemathesis" run "$url/openapi.json" --url "$url" -H "Authorization: Bearer $token" --seed "${SEED:-1}" \
        --checks all --exclude-checks positive_data_acceptance --max-examples "$examples" --workers 1 --no-color \
        >"$role.log" 2>&1 || { cat "$role.log"; echo "schemathesis found a failure as $role" >&2; exit 1; }
    grep -E 'generated' "$role.log"
done
kill -0 "$server"
