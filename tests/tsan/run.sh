#!/bin/sh
# Run units and tests of a build with ThreadSanitizer: run.sh "UNITS" "TESTS". Processes go on behind a report, so that
# tests judge what they always do; reports are counted at the end. Threads that have not been waited for are none: a
# stopped program leaves its encoders to the system.
# Closes with the races and "N passed, N failed"; the exit status says whether there was a race of ours.
set -u
: "${BUILD:=build-tsan}" "${PYTHON:=/usr/bin/python3}"
races=$(realpath "$BUILD")/races
rm -rf "$races"
mkdir -p "$races"
export TSAN_OPTIONS="log_path=$races/race:exitcode=0:history_size=7:report_thread_leaks=0"
export SLUICE_SANDBOX=off # reports are written by processes that may write nothing else

passed=0
failed=0
for unit in $1; do
    if "$unit" >"$races/said" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $unit"
        grep -E '^\[  (ERROR|FAILED)|LINE' "$races/said"
    fi
done
SLUICE=$(realpath "$BUILD/sluice")
export SLUICE
# shellcheck disable=SC2086
(cd tests && "$PYTHON" -m pytest -q -p no:cacheprovider $2) >"$races/said" 2>&1
tail -40 "$races/said"
number() { grep -oE "[0-9]+ $1" "$races/said" | tail -1 | grep -oE '^[0-9]+' || echo 0; }
passed=$((passed + $(number passed)))
failed=$((failed + $(number failed) + $(number error)))
rm -f "$races/said"

"$PYTHON" tests/tsan/races.py "$races"
status=$?
echo "$passed passed, $failed failed"
exit $status
