#!/bin/sh
# check.sh C_FILES H_FILES CU_FILES: format, warnings, headers by themselves, static analysis and
# layers. Says what is wrong and fails; says one line when nothing is.
# check.sh gcc|clang|header FILE...: a part of that, for these.
set -u
bad=0
complain() { echo "check: $1"; bad=1; }

# What the Makefile would define.
# shellcheck disable=SC2089
defines='-DSLUICE_VERSION="0" -DROWS_TABLE=rows_x -DROWS_NAME="x"'

# Every header says all that it needs. Those of kernels/ are C++, and need CUDA's.
# shellcheck disable=SC2086,SC2090
one() { # gcc|clang|header FILE
    case $1:$2 in
        gcc:*) # some of its warnings come of optimization
            gcc -std=gnu11 -Werror $WARNINGS -O1 -I. -Iinclude $FLAGS $defines -c -o /dev/null "$2" ;;
        clang:*)
            clang -std=gnu11 -Werror $WARNINGS -I. -Iinclude $FLAGS $defines -fsyntax-only "$2" ;;
        header:kernels/*)
            [ -z "$CUDA_ROOT" ] ||
                echo "#include \"$2\"" | g++ -std=c++17 -Wall -Wextra -Wno-missing-field-initializers \
                    -Werror -I. -Iinclude -isystem "$CUDA_ROOT/include" -fsyntax-only -x c++ - ;;
        header:*)
            echo "#include \"$2\"" | gcc -std=gnu11 -Werror $WARNINGS -I. -Iinclude $FLAGS -fsyntax-only -x c - ;;
    esac
}
case $1 in
    gcc | clang | header)
        how=$1
        shift
        for file; do
            one "$how" "$file" || complain "$file does not compile: $how"
        done
        exit $bad ;;
esac
c_files=$1 h_files=$2 cu_files=$3
each() { # gcc|clang|header FILE...: on all processors
    how=$1
    shift
    printf '%s\n' "$@" | xargs -n 8 -P "$(nproc)" sh "$0" "$how" || bad=1
}

# The look of the code is that of clang-format 14; other versions see some lines differently.
format=$(command -v clang-format-14 || command -v clang-format)
case $("$format" --version) in
    *' 14.'*)
        # shellcheck disable=SC2086
        "$format" --dry-run -Werror $c_files $h_files $cu_files cpu/rows/*.inc ||
            complain "clang-format would change the files above" ;;
    *) echo "check: format not checked, clang-format 14 is not here" ;;
esac

# shellcheck disable=SC2086,SC2090
{
    each gcc $c_files
    each clang $c_files
    each header $h_files
    cppcheck --quiet -j "$(nproc)" --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=ctuuninitvar --std=c11 -I. -Iinclude $defines $c_files ||
        complain "cppcheck has found something"
}

# A room may include only what lies below it; app and bench stand on all, kernels and cpu on plan.
layer() { # ROOM ALLOWED-PATTERN
    grep -nE '^ *# *include *"' "$1"/*.[ch]* | grep -vE "include *\"($2)/[^/]*\"" &&
        complain "$1 includes what it must not know"
    return 0
}
layer base 'base'
layer plan '(plan|base)'
layer stages/design '(stages/design|plan|base)'
layer stages '(stages|stages/design|plan|base)'
layer stages/chain '(stages/chain|stages|plan|base)'
layer filter '(filter|stages|plan|base|sluice)'
layer cpu/reference '(cpu/reference|plan|base)'
layer cpu/rows '(cpu/rows|plan|base)'
layer cpu '(cpu|cpu/reference|cpu/rows|plan|base)'
layer kernels '(kernels|plan|base)'
layer kernels/stencil '(kernels/stencil|kernels|plan|base)'
layer kernels/full_frame '(kernels/full_frame|kernels|plan|base)'
layer kernels/executor '(kernels/(executor|stencil)|kernels|plan|base)'
layer kernels/tutorial '(kernels/(tutorial|executor)|kernels|plan|base)'
below='stages|plan|base|sluice'
rooms=
for room in ffmpeg input/io input/devices input/faults input/live input input/seek output/file output/http \
    output/muxer output/transport output report part engine/filter engine/threads engine proof; do
    rooms=$rooms${rooms:+|}$room
    layer pipeline/$room "(pipeline/($rooms)|$below)"
done
layer pipeline "(pipeline/($rooms)|$below)"
layer bench "(bench|pipeline/(engine|engine/threads|input|ffmpeg)|$below)"
layer control '(control|sluice)'
layer page/player "(page/player|pipeline/($rooms)|$below)"
layer page/preview "(page/preview|pipeline/($rooms)|$below)"
layer page "(page|page/player|page/preview|control|pipeline/($rooms)|$below)"
layer app/service '(app/service|control|sluice)'
layer app/jobs '(app/jobs|sluice)'
layer app/sandbox 'app/sandbox'
layer app/farm '(app/farm|control|sluice)'
layer app '(app|app/farm|app/jobs|app/sandbox|app/service|bench|page|control|sluice)'
layer hosts/frei0r 'sluice'
layer hosts/gstreamer '(hosts/gstreamer|sluice)'
layer app/generate '(app|app/generate|control|sluice)'
grep -nE '#include <(lib(av|sw)|cuda)' base/*.[ch] plan/*.[ch] stages/*.[ch] stages/*/*.[ch] filter/*.[ch] cpu/*.[ch] cpu/*/*.[ch] app/*.[ch] app/*/*.[ch] &&
    complain "FFmpeg belongs in pipeline, CUDA in kernels"
grep -nE '#include <pthread' plan/*.[ch] stages/*.[ch] stages/*/*.[ch] app/*.h app/*/*.h | grep -v '_internal\.h:' && complain "plan and stages know no threads"
# shellcheck disable=SC2086
[ -n "$cu_files" ] && grep -nE '#include <lib(av|sw)' $cu_files && complain "kernels does not know FFmpeg"

if command -v shellcheck >/dev/null; then
    shellcheck tests/*.sh media/*.sh .ci/run || complain "shellcheck has found something"
fi

[ $bad = 0 ] && echo "check: all is well"
exit $bad
