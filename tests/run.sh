#!/bin/sh
# Run every test and close with "N passed, N failed". The exit status says whether all passed.
set -u
: "${BUILD:=build}" "${PYTHON:=/usr/bin/python3}"

log=$(mktemp) reference_log=$(mktemp)
reference=
trap '[ -z "$reference" ] || kill $reference; rm -f "$log" "$reference_log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
passed=0
failed=0

# count NAME PASSED FAILED STATUS: a run that died without saying so is a failure.
count() {
    passed=$((passed + $2))
    failed=$((failed + $3))
    if [ "$4" != 0 ] && [ "$3" = 0 ]; then failed=$((failed + 1)); fi
    if [ "$4" != 0 ]; then echo "FAILED: $1 (status $4)"; fi
}

number() { # PATTERN: the last number before it in the log
    n=$(grep -oE "[0-9]+ $1" "$log" | tail -1 | grep -oE '^[0-9]+')
    echo "${n:-0}"
}

# The comparison with the reference keeps one processor busy while other tests wait for clocks and servers. Campaigns
# cut it short by CONFORMANCE.
# shellcheck disable=SC2086
"$BUILD/conformance" --backend cpu ${CONFORMANCE:-} >"$reference_log" 2>&1 &
reference=$!

for unit in "$BUILD"/unit_*; do
    case $unit in *.o) continue ;; esac
    "$unit" >"$log" 2>&1
    status=$?
    [ $status = 0 ] || cat "$log"
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(grep '^\[  FAILED  \] [a-z0-9_]*$' "$log" | sort -u | wc -l) # each is listed again at the end
    echo "$(basename "$unit"): $ok passed"
    count "$unit" "$ok" "$bad" $status
done

compared() { # STATUS OPTIONS: what conformance has said is in the log
    status=$1
    shift
    if [ "$status" = 0 ]; then head -1 "$log"; else cat "$log"; fi
    count "conformance $*" "$(number passed)" "$(number failed)" "$status"
}

for devices in '' '--devices 2'; do
    # shellcheck disable=SC2086
    "$BUILD/conformance" --backend cuda $devices >"$log" 2>&1
    # shellcheck disable=SC2086
    compared $? --backend cuda $devices
done

export SLUICE
SLUICE=$(realpath "$BUILD/sluice")
pytest() { "$PYTHON" -m pytest -q -p no:cacheprovider "$@" >"$log" 2>&1; }

# Three files at a time: a good part of the time tests wait, for clocks, sources and servers. A few that fail
# in company are run again alone, where only the second result counts.
many=
"$PYTHON" -c "import xdist" 2>/dev/null && many="-n 3 --dist loadfile"
# shellcheck disable=SC2086
pytest $many --durations 25 tests
status=$?
cat "$log"
again=$(sed -n 's/^\(FAILED\|ERROR\) \(tests\/.*::.*\)/\2/p' "$log" | sed 's/ - .*//' | sort -u)
if [ -n "$many" ] && [ $status = 1 ] && [ -n "$again" ] && [ "$(echo "$again" | wc -l)" -le 10 ]; then
    passed=$((passed + $(number passed)))
    echo "once more, alone:" "$again"
    echo "$again" | tr '\n' '\0' | xargs -0 "$PYTHON" -m pytest -q -p no:cacheprovider >"$log" 2>&1
    status=$?
    cat "$log"
fi
count pytest "$(number passed)" "$(($(number failed) + $(number error)))" $status

wait $reference
status=$?
reference=
cat "$reference_log" >"$log"
compared $status --backend cpu

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
