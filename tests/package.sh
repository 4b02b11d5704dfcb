#!/bin/sh
# Debian packages from start to end, each step in a Debian that has nothing else.
#
#   package.sh SUITE [OUT]      SUITE bookworm or trixie; OUT (default build/packages/SUITE) gets what is built
#
# Builds the packages of the tracked files, and once more in another folder, with another umask, time zone
# and user, for equal bits; holds lintian against them; installs them elsewhere, filters a clip, compiles
# programs against them, imports the Python module; purges them and looks for what stayed. Needs root,
# debootstrap, the network, 4 GB under /var/tmp and a quarter of an hour. PROFILES (pkg.sluice.cuda) are
# taken over where they can be built.
# Commands in single quotes are run in the new system.
# shellcheck disable=SC2016
set -eu
suite=${1:?usage: package.sh SUITE [OUT]}
cd "$(dirname "$0")/.."
out=${2:-build/packages/$suite}
mkdir -p "$out"
out=$(realpath "$out")

command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null
[ -e "/usr/share/debootstrap/scripts/$suite" ] || ln -s sid "/usr/share/debootstrap/scripts/$suite" # a newer suite
root=$(mktemp -d /var/tmp/package.XXXXXX)
leave() {
    for machine in build use; do
        ! mountpoint -q "$root/$machine/proc" || umount "$root/$machine/proc"
    done
    rm -rf --one-file-system "$root"
}
trap leave EXIT
trap 'exit 1' INT TERM HUP

on() { # MACHINE COMMAND: as root there
    chroot "$root/$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
        DEBIAN_FRONTEND=noninteractive sh -euc "$2"
}
step() { echo "== $suite: $*"; }

step "two machines"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root/build" >"$out/debootstrap.log" 2>&1 ||
    { tail -3 "$out/debootstrap.log"; exit 1; }
cp -a "$root/build" "$root/use"
for machine in build use; do
    mount -t proc proc "$root/$machine/proc"
    echo 'Dpkg::Use-Pty "0";' >"$root/$machine/etc/apt/apt.conf.d/no-pty"
done

step "build"
mkdir -p "$root/build/home/one/sluice" "$root/use/packages"
git ls-files -z | tar -c --no-recursion --null -T - | tar -x -C "$root/build/home/one/sluice"
on build '
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends build-essential lintian >/dev/null
    cd /home/one/sluice
    apt-get build-dep -y -qq --no-install-recommends ./ >/dev/null
    useradd -u 2001 one
    useradd -u 2002 other
    mkdir -p /home/other/elsewhere
    cp -a /home/one/sluice /home/other/elsewhere/
    chown -R one: /home/one
    chown -R other: /home/other
    su one -c "umask 022 && dpkg-buildpackage -us -uc" >/home/one/build.log 2>&1 || { tail -40 /home/one/build.log; exit 1; }'

step "build once more, elsewhere"
on build '
    cd /home/other/elsewhere/sluice
    su other -c "umask 027 && TZ=Asia/Kathmandu LC_ALL=C DEB_BUILD_OPTIONS=\"nocheck parallel=1\" \
        dpkg-buildpackage -us -uc -b" >/home/other/build.log 2>&1 || { tail -40 /home/other/build.log; exit 1; }
    cd /home/one
    sha256sum *.deb | tee sums
    cd /home/other/elsewhere
    sha256sum -c --quiet /home/one/sums
    echo "equal bits"'
find "$root/build/home/one" -maxdepth 1 -type f -not -name ".*" -exec cp -t "$out" {} +
cp "$root"/build/home/one/*.deb "$root/use/packages"
rm -f "$root"/use/packages/*-dbgsym_*

# Standards-Version is that of the newest suite, which lintian of others does not know.
step "lintian"
on build '
    cd /home/one
    su one -c "lintian --version
        lintian --fail-on error,warning --suppress-tags newer-standards-version --display-info *.changes" &&
        echo "lintian: no errors, no warnings"'

step "install and run"
on use '
    apt-get update -qq
    cd /packages
    apt-get install -y -qq --no-install-recommends $(ls -d ./*.deb | grep -v -- -dev_) >/dev/null
    sluice --version
    cd /tmp
    head -c 276480 /dev/zero | tr "\0" "\101" | sluice -F rawvideo --pix-fmt rgb24 --size 64x48 --rate 25 - \
        in.mkv -f brightness=40 -c:v ffv1 -q
    sluice in.mkv out.mkv -f gray,gaussian=2,sobel -c:v ffv1 -q
    sluice out.mkv hash:frames.txt -f null -q
    test "$(grep -vc "^#" frames.txt)" = 30
    sluice stages >/dev/null
    for file in man/man1/sluice.1.gz bash-completion/completions/sluice doc/sluice/copyright; do
        test -s /usr/share/$file
    done'

step "filter from Python"
cp tests/package.py "$root/use/tmp"
on use '
    apt-get install -y -qq --no-install-recommends python3-numpy >/dev/null
    cd /tmp
    python3 package.py in.mkv'

step "filter in other programs"
on use '
    apt-get install -y -qq --no-install-recommends ffmpeg gstreamer1.0-tools gstreamer1.0-plugins-base >/dev/null
    cd /tmp
    ffmpeg -v error -y -i in.mkv -vf frei0r=filter_name=sluice:filter_params=invert host.mkv
    gst-launch-1.0 -q videotestsrc num-buffers=3 ! sluice chain=gray,sobel ! fakesink'

step "compile against it"
mkdir -p "$root/use/programs"
cp tests/library/names.c examples/pgm.c "$root/use/programs"
on use '
    cd /packages
    apt-get install -y -qq --no-install-recommends ./libsluice-dev_*.deb gcc libc6-dev pkgconf >/dev/null
    cd /programs
    gcc -Wall -Werror names.c -o names $(pkg-config --cflags --libs sluice)
    ./names /tmp/in.mkv
    printf "P5 64 48 255\n" >in.pgm
    head -c 3072 names >>in.pgm
    gcc -Wall -Werror pgm.c -o pgm $(pkg-config --cflags --libs sluice-filter)
    ./pgm gaussian=2,sobel <in.pgm >shared.pgm
    gcc pgm.c -o pgm $(pkg-config --cflags --static --libs sluice-filter | sed s/-lsluice-filter/-l:libsluice-filter.a/)
    ./pgm gaussian=2,sobel <in.pgm >static.pgm
    cmp shared.pgm static.pgm
    test "$(wc -c <static.pgm)" -ge 3072'

step "purge"
on use '
    names=$(cd /packages && for file in *.deb; do echo "${file%%_*}"; done)
    dpkg -L $names | sort -u >/tmp/had
    apt-get purge -y -qq $names >/dev/null
    ! dpkg-query -W -f "\${db:Status-Abbrev} \${Package}\n" | grep -i sluice
    while read -r file; do
        [ -d "$file" ] || [ ! -e "$file" ] || { echo "$file stayed"; exit 1; }
    done </tmp/had
    ! find / -xdev -name "*sluice*" -not -path "/packages/*" -not -path "/proc/*" -not -path "/var/lib/apt/*" | grep .'
step "well"
