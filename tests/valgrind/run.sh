#!/bin/sh
# Run units and tests under valgrind's memcheck: run.sh "UNITS" "TESTS". What AddressSanitizer cannot see is use of
# memory that nobody has written, ours or FFmpeg's. Reports are in BUILD/reports, one file a process; a process that
# memcheck complains of ends with 99.
# Closes with the reports and "N passed, N failed"; the exit status says whether there was a report.
set -u
: "${BUILD:=build-valgrind}" "${PYTHON:=/usr/bin/python3}"
build=$(realpath "$BUILD")
reports=$build/reports
rm -rf "$reports"
mkdir -p "$reports"
export SLUICE_SANDBOX=off # reports are written by processes that may write nothing else

valgrind="valgrind -q --error-exitcode=99 --suppressions=$(realpath tests/valgrind/others.supp)"
passed=0
failed=0
for unit in $1; do
    if $valgrind --log-file="$reports/$(basename "$unit").%p" "$unit" >"$build/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $unit"
        grep -E '^\[  (ERROR|FAILED)|LINE' "$build/said"
    fi
done

if [ -n "$2" ]; then
    printf '#!/bin/sh\nexec %s --log-file="%s/sluice.%%p" "%s" "$@"\n' "$valgrind" "$reports" "$build/sluice" >"$build/under-valgrind"
    chmod +x "$build/under-valgrind"
    # shellcheck disable=SC2086
    (cd tests && SLUICE=$build/under-valgrind "$PYTHON" -m pytest -q -p no:cacheprovider $2) >"$build/said" 2>&1
    tail -40 "$build/said"
    number() { grep -oE "[0-9]+ $1" "$build/said" | tail -1 | grep -oE '^[0-9]+' || echo 0; }
    passed=$((passed + $(number passed)))
    failed=$((failed + $(number failed) + $(number error)))
fi
rm -f "$build/said"

# Calls that valgrind does not know (Landlock, seccomp) are no reports.
complaints=$(grep -lE '^==[0-9]+== (Invalid|Conditional|Use of|Syscall|Mismatched|Source and|Process terminating)' "$reports"/* 2>/dev/null)
for complaint in $complaints; do
    echo "$complaint:"
    head -12 "$complaint"
done
echo "$passed passed, $failed failed"
[ -z "$complaints" ] && [ "$failed" = 0 ]
