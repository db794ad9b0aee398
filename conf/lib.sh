# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What conf/quickstart and tests/run share: finding the checkout, installing
# what is missing, building out of the source tree. Sourced, never run.
# It writes below build/ only, installs packages only as root and only after
# naming them, and never touches the system's own httpd.

AIGW_TOP=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
AIGW_SRC=$AIGW_TOP/build/src
AIGW_OBJ=$AIGW_TOP/build/obj
AIGW_JOBS=$(nproc 2>/dev/null || echo 1)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf "%s\n" "$@"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# What is needed, and how to see that it is there. Rows: package, test.
# The test looks for the thing and not for the package, so that what came
# from elsewhere counts too.
have_lib() { pkg-config --exists "$1" 2>/dev/null; }
aigw_build_needs() {
    cat <<'ROWS'
gcc             command -v gcc
libc6-dev       test -e /usr/include/stdio.h
make            command -v make
autoconf        command -v autoreconf
automake        command -v automake
libtool         command -v libtoolize
pkg-config      command -v pkg-config
apache2-bin     command -v apache2 || command -v httpd
apache2-dev     command -v apxs || command -v apxs2
libapr1-dev     command -v apr-1-config
libaprutil1-dev command -v apu-1-config
libssl-dev      have_lib openssl
libjansson-dev  have_lib jansson
libsmartcols-dev have_lib smartcols
zlib1g-dev      have_lib zlib
libzstd-dev     have_lib libzstd
curl            command -v curl
ROWS
}

# install_missing ROWS: installs the packages whose test fails.
install_missing() {
    local package probe missing=()
    while read -r package probe; do
        [ -n "$package" ] || continue
        eval "$probe" </dev/null >/dev/null 2>&1 || missing+=("$package")
    done <<<"$1"
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        die "these are missing and there is no apt-get to install them" \
            "(Debian's names): ${missing[*]}"
    fi
    if [ "$(id -u)" -ne 0 ]; then
        say "Packages are missing. Run this line as root, then start again:" \
            "  apt-get install -y --no-install-recommends ${missing[*]}"
        exit 1
    fi
    say "Installing with apt-get: ${missing[*]}"
    apt_install "${missing[@]}"
}

apt_install() {
    local log=$AIGW_TOP/build/apt.log
    mkdir -p "$AIGW_TOP/build"
    # Packages' own scripts expect the usual mask.
    if ! (umask 022
          export DEBIAN_FRONTEND=noninteractive
          opts=(-qq -o DPkg::Lock::Timeout=300)
          apt-get "${opts[@]}" update ||
              echo "apt-get update failed, going on with the lists at hand"
          apt-get "${opts[@]}" install -y --no-install-recommends "$@"
         ) </dev/null >"$log" 2>&1
    then
        tail -n 5 "$log" >&2
        die "apt-get could not install them: is a package source" \
            "reachable? (all that it said: $log)"
    fi
}

# stage_sources DEST: a copy of the sources without anything that a build in
# the checkout itself has left there, so that both can live side by side.
# A file is copied when its content differs and is as new as its copying:
# make never takes an object for newer than a source that was edited while
# the object was being made.
stage_sources() {
    local dest=$1 file
    mkdir -p "$dest" || return 1
    (cd "$AIGW_TOP" && source_files) |
    while IFS= read -r file; do
        cmp -s "$AIGW_TOP/$file" "$dest/$file" && continue
        mkdir -p "$dest/${file%/*}" && cp "$AIGW_TOP/$file" "$dest/$file" ||
            exit 1
    done || return 1
    (cd "$dest" && source_files) |
    while IFS= read -r file; do
        [ -e "$AIGW_TOP/$file" ] || rm -f "$dest/$file"
    done
}

# The files that belong to the project, one a line, below the working folder.
source_files() {
    find ./configure.ac ./Makefile.am ./README.md ./CHANGES ./LICENSE \
        ./.clang-format ./.ci ./mod_aigw ./calc ./conf ./tests ./docs \
        \( -name .libs -o -name .deps -o -name __pycache__ \
           -o -name node_modules -o -name .pytest_cache \) -prune -o \
        -type f ! -name '*.lo' ! -name '*.la' ! -name '*.a' \
        ! -name '*.trs' ! -name .dirstamp -print0 2>/dev/null |
    LC_ALL=C xargs -0 grep -LaP '\A\x7fELF'
}

# bootstrap SRC: configure and Makefile.in, made again when their sources
# have changed.
bootstrap() {
    local src=$1
    if [ ! -f "$src/configure" ] ||
       [ "$src/configure.ac" -nt "$src/configure" ] ||
       [ "$src/Makefile.am" -nt "$src/Makefile.in" ]; then
        say "  autoreconf"
        (cd "$src" && autoreconf -fi) >"$src/autoreconf.log" 2>&1 || {
            tail -n 20 "$src/autoreconf.log" >&2
            return 1
        }
    fi
}

# configure_tree SRC OBJ [flag...]
configure_tree() {
    local src=$1 obj=$2
    shift 2
    mkdir -p "$obj"
    if [ ! -f "$obj/config.status" ] ||
       [ "$src/configure" -nt "$obj/config.status" ]; then
        say "  configure $*"
        (cd "$obj" && "$src/configure" -q "$@") >"$obj/configure.log" 2>&1 || {
            tail -n 20 "$obj/configure.log" >&2
            return 1
        }
    fi
}

# make_shown OBJ [target...]: make with one short line a file, and the whole
# truth in make.log.
make_shown() {
    local obj=$1
    shift
    make -C "$obj" -j"$AIGW_JOBS" -s --no-print-directory V=0 "$@" 2>&1 \
        </dev/null | tee "$obj/make.log"
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

# build_here [target...]: the checkout, built in build/obj.
build_here() {
    stage_sources "$AIGW_SRC" && bootstrap "$AIGW_SRC" &&
        configure_tree "$AIGW_SRC" "$AIGW_OBJ" && make_shown "$AIGW_OBJ" "$@"
}
