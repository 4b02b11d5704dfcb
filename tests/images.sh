#!/bin/sh
# The container images from start to end, without an engine and without a registry.
#
#   images.sh [OUT]     OUT (default build/images) gets the logs
#
# Builds packaging/Dockerfile and packaging/Dockerfile.cuda of the tracked files with buildah, on a Debian that
# debootstrap makes, where they name Debian's image, and on the CUDA toolkit of this machine, where they name
# NVIDIA's; then runs what came out: user, version, a clip, `serve` and its health check. Needs root, buildah,
# debootstrap, the network, 6 GB under /var/tmp and ten minutes. Without a toolkit the second image is left out.
# CUDA_ARCHS="90" saves time. The GPU, and the bases as they are published, are not tried.
# Commands in single quotes are run in the image.
# shellcheck disable=SC2016
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/images}
mkdir -p "$out"
out=$(realpath "$out")
cuda=$(realpath "${CUDA_HOME:-/usr/local/cuda}")

for program in buildah debootstrap; do
    command -v $program >/dev/null || apt-get install -y -qq --no-install-recommends $program >/dev/null
done
work=$(mktemp -d /var/tmp/images.XXXXXX)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot CONTAINERS_STORAGE_CONF="$work/storage.conf"
cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "vfs"
graphroot = "$work/images"
runroot = "$work/run"
END
leave() {
    buildah rm --all >/dev/null 2>&1 || :
    rm -rf --one-file-system "$work"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP
step() { echo "== $*"; }

# of FILE: what its stage NAME is made from; the last one's without NAME.
base_of() {
    awk -v name="${2:-}" '$1 == "FROM" && (name == "" || $4 == name) { from = $2 } END { print from }' "$1"
}
image() { # NAME FOLDER
    container=$(buildah from scratch)
    buildah add -q "$container" "$2" / >/dev/null
    buildah commit -q --rm "$container" "docker.io/$1" >/dev/null
}

debian=$(base_of packaging/Dockerfile)
suite=${debian#debian:}
suite=${suite%-slim}
step "$debian"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$work/debian" >"$out/debootstrap.log" 2>&1 ||
    { tail -3 "$out/debootstrap.log"; exit 1; }
image "library/$debian" "$work/debian"
rm -rf --one-file-system "$work/debian"
mkdir "$work/source"
git ls-files -z | tar -c --no-recursion --null -T - | tar -x -C "$work/source"

# try FILE BUILDAH-ARGUMENTS...
try() {
    file=packaging/$1 log=$out/$1.log
    shift
    step "build $file"
    # The default format of images knows no health check.
    buildah bud --format docker --pull-never "$@" -f "$work/source/$file" -t sluice "$work/source" >"$log" 2>&1 ||
        { tail -20 "$log"; exit 1; }
    container=$(buildah from --pull-never sluice)
    about() { buildah inspect --format "{{.Docker.Config.$1}}" "$container"; }
    test "$(about User) $(about WorkingDir) $(about Entrypoint)" = "2000 /data [sluice]"
    step "run"
    in_it() { buildah run "$container" -- "$@"; }
    in_it sluice --version
    test "$(in_it id -u)" = 2000
    in_it sh -euc 'head -c 276480 /dev/zero | tr "\0" "\101" >/tmp/raw
        sluice -F rawvideo --pix-fmt rgb24 --size 64x48 --rate 25 /tmp/raw in.mkv -f brightness=40 -c:v libx264 -q
        sluice in.mkv out.mp4 -f gray,gaussian=2,sobel -q
        sluice out.mp4 hash:frames.txt -f null -q
        test "$(grep -vc "^#" frames.txt)" = 30
        sluice doctor in.mkv >/dev/null'
    step "serve, and its health check"
    about Healthcheck.Test | grep -q /dev/tcp/127.0.0.1/8080
    in_it bash -euc 'sluice serve in.mkv --listen 127.0.0.1:8080 -q & page=$!
        for k in $(seq 100); do (: >/dev/tcp/127.0.0.1/8080) 2>/dev/null && break; sleep 0.1; done
        : >/dev/tcp/127.0.0.1/8080
        kill $page; wait $page || test $? = 143'
    buildah rm "$container" >/dev/null
}
try Dockerfile

toolkit=$(base_of packaging/Dockerfile.cuda toolkit)
if [ -x "$cuda/bin/nvcc" ]; then
    step "$toolkit"
    mkdir -p "$work/toolkit/usr/local"
    cp -a "$cuda" "$work/toolkit/usr/local/cuda-13.0"
    # Libraries that nothing here is linked with fill the disk.
    find "$work/toolkit" -name '*.so*' -size +20M -delete
    find "$work/toolkit" -name '*_static*.a' -size +20M -delete
    image "$toolkit" "$work/toolkit"
    rm -rf "$work/toolkit"
    try Dockerfile.cuda --build-arg CUDA_ARCHS="${CUDA_ARCHS:-all}"
else
    step "no CUDA toolkit in $cuda: packaging/Dockerfile.cuda is left out"
fi
step "well"
