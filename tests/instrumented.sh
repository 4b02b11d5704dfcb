#!/bin/sh
# Run units and tests under what looks over the program's shoulder: instrumented.sh tsan|valgrind "UNITS" "TESTS". tsan is a
# build with ThreadSanitizer; valgrind is memcheck, which sees use of memory that nobody has written, ours or FFmpeg's.
# Reports are in BUILD/reports, one file a process. Under ThreadSanitizer processes go on behind a report, so that tests
# judge what they always do; threads that have not been waited for are none, as a stopped program leaves its encoders to the
# system. A process that memcheck complains of ends with 99.
# Closes with the reports and "N passed, N failed"; the exit status says whether there was a report of ours.
set -u
: "${PYTHON:=/usr/bin/python3}"
tool=$1 units=$2 tests=$3
build=$(realpath "${BUILD:=build-$tool}")
reports=$build/reports
rm -rf "$reports"
mkdir -p "$reports"
export SLUICE_SANDBOX=off # reports are written by processes that may write nothing else

under=
SLUICE=$build/sluice
case $tool in
    tsan) export TSAN_OPTIONS="log_path=$reports/race:exitcode=0:history_size=7:report_thread_leaks=0" ;;
    valgrind)
        under="valgrind -q --error-exitcode=99 --suppressions=$(realpath tests/valgrind/others.supp) --log-file=$reports/%p"
        SLUICE=$build/under-valgrind
        printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$under" "$build/sluice" >"$SLUICE"
        chmod +x "$SLUICE" ;;
esac

passed=0
failed=0
for unit in $units; do
    # shellcheck disable=SC2086
    if $under "$unit" >"$build/said" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $unit"
        grep -E '^\[  (ERROR|FAILED)|LINE' "$build/said"
    fi
done

if [ -n "$tests" ]; then
    # shellcheck disable=SC2086
    (cd tests && SLUICE=$SLUICE "$PYTHON" -m pytest -q -p no:cacheprovider $tests) >"$build/said" 2>&1
    tail -40 "$build/said"
    number() { grep -oE "[0-9]+ $1" "$build/said" | tail -1 | grep -oE '^[0-9]+' || echo 0; }
    passed=$((passed + $(number passed)))
    failed=$((failed + $(number failed) + $(number error)))
fi

status=0
case $tool in
    tsan) "$PYTHON" tests/tsan/races.py "$reports" || status=1 ;;
    valgrind) # calls that it does not know (Landlock, seccomp) are no reports
        bad='^==[0-9]+== (Invalid|Conditional|Use of|Syscall|Mismatched|Source and|Process terminating)'
        grep -lE "$bad" -r "$reports" | while read -r report; do
            echo "$report:"
            head -12 "$report"
        done
        ! grep -qE "$bad" -r "$reports" || status=1 ;;
esac
echo "$passed passed, $failed failed"
[ "$status" = 0 ] && { [ "$tool" = tsan ] || [ "$failed" = 0 ]; }
