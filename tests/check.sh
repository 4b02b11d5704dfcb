#!/bin/sh
# check.sh C_FILES H_FILES CU_FILES: format, warnings, headers by themselves, static analysis and
# layers. Says what is wrong and fails; says one line when nothing is.
set -u
c_files=$1 h_files=$2 cu_files=$3
bad=0
complain() { echo "check: $1"; bad=1; }

# The look of the code is that of clang-format 14; other versions see some lines differently.
format=$(command -v clang-format-14 || command -v clang-format)
case $("$format" --version) in
    *' 14.'*)
        # shellcheck disable=SC2086
        "$format" --dry-run -Werror $c_files $h_files $cu_files cpu/*.inc ||
            complain "clang-format would change the files above" ;;
    *) echo "check: format not checked, clang-format 14 is not here" ;;
esac

# What the Makefile would define.
set -- '-DSLUICE_VERSION="0"' -DROWS_TABLE=rows_x '-DROWS_NAME="x"'
for compiler in gcc clang; do
    for file in $c_files; do
        # shellcheck disable=SC2086
        $compiler -std=gnu11 -Werror $WARNINGS -O1 -I. $FLAGS "$@" -c -o /dev/null "$file" ||
            complain "$compiler does not take $file"
    done
done

# Every header says all that it needs. Those of kernels/ are C++, and need CUDA's.
alone() { # FILE
    case $1 in
        kernels/*)
            [ -z "$CUDA_ROOT" ] ||
                echo "#include \"$1\"" | g++ -std=c++17 -Wall -Wextra -Wno-missing-field-initializers \
                    -Werror -I. -isystem "$CUDA_ROOT/include" -fsyntax-only -x c++ - ;;
        *)
            # shellcheck disable=SC2086
            echo "#include \"$1\"" |
                gcc -std=gnu11 -Werror $WARNINGS -I. $FLAGS -fsyntax-only -x c - ;;
    esac
}
for file in $h_files; do
    alone "$file" || complain "$file does not compile alone"
done

# shellcheck disable=SC2086
cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=ctuuninitvar --std=c11 -I. "$@" $c_files ||
    complain "cppcheck has found something"

# A folder may include only what lies below it: app -> pipeline -> stages <- cpu, kernels.
layer() { # FOLDER ALLOWED-PATTERN
    grep -nE '^ *# *include *"' "$1"/*.[ch]* | grep -vE "include *\"($2)" &&
        complain "$1 includes what it must not know"
    return 0
}
layer stages 'stages/'
layer cpu '(stages|cpu)/'
layer kernels '(stages|kernels)/'
layer pipeline '(stages|pipeline)/'
layer app '(app/|pipeline/sluice\.h)'
grep -nE '#include <(lib(av|sw)|cuda|pthread)' stages/*.[ch] app/*.h &&
    complain "stages knows neither FFmpeg nor CUDA nor threads"
grep -nE '#include <(lib(av|sw)|cuda)' cpu/*.[ch] app/*.[ch] && complain "FFmpeg belongs in pipeline"
# shellcheck disable=SC2086
[ -n "$cu_files" ] && grep -nE '#include <lib(av|sw)' $cu_files && complain "kernels does not know FFmpeg"

if command -v shellcheck >/dev/null; then
    shellcheck tests/*.sh media/*.sh .ci/run || complain "shellcheck has found something"
fi

[ $bad = 0 ] && echo "check: all is well"
exit $bad
