# shellcheck shell=bash
# Functions of deploy/quickstart and deploy/test. Sourced; needs ROOT (the checkout) to be set.

say () { printf '%s\n' "$*"; }
die () { printf "deploy/%s: %s\n" "${0##*/}" "$*" >&2; exit 1; }

LOGS=${ROOT:?}/build/logs

# Seconds since this script began, for progress lines.
step () { printf '== [%3ds] %s\n' "$SECONDS" "$*"; }

# Names in deploy/packages of the given kinds.
packages_of () {
    local kind
    for kind in "$@"; do
        awk -v kind="$kind" '$1 == kind { print $2 }' "$ROOT/deploy/packages"
    done
}

package_installed () {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Runs as root: directly, or through sudo.
as_root () {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "packages are missing and there is neither root nor sudo to install them: $*"
    fi
}

# Installs what is missing of the given kinds; asks apt for nothing when all is there.
need_packages () {
    local missing=() name log=$LOGS/packages.log
    command -v dpkg-query >/dev/null || die "this is no Debian: dpkg-query is missing"
    for name in $(packages_of "$@"); do
        package_installed "$name" || missing+=("$name")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        step "packages: all there"
        return 0
    fi
    step "packages: installing ${missing[*]}"
    mkdir -p "$LOGS"
    : >"$log"
    for name in "${missing[@]}"; do
        if ! apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]'; then
            as_root apt-get update >>"$log" 2>&1 </dev/null || true
            break
        fi
    done
    install_packages "$log" "${missing[@]}" && return 0
    # The lists may name versions that are gone from the mirror.
    as_root apt-get update >>"$log" 2>&1 </dev/null ||
        die "apt-get update failed; its words are in $log"
    install_packages "$log" "${missing[@]}" ||
        die "packages could not be installed (${missing[*]}); apt's words are in $log"
}

# The same for what can be done without: says so, and fails, where it cannot be had.
want_packages () {
    (need_packages "$@") && return 0
    say "deploy/${0##*/}: going on without the packages of '$*': what needs them says so and is skipped"
    return 1
}

# Installs without starting any of their services: whoever has no policy of his own for that gets one
# for so long. (Debian's way: /usr/sbin/policy-rc.d, exit 101.)
install_packages () { # log names...
    local log=$1 policy=/usr/sbin/policy-rc.d code=0 ours=
    shift
    if [ ! -e "$policy" ]; then
        ours=yes
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
    fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" \
        >>"$log" 2>&1 </dev/null || code=$?
    [ -z "$ours" ] || as_root rm -f "$policy"
    return $code
}

# Configures and builds a preset into build/NAME: build_preset NAME [cmake options]. Extra ninja
# targets come from BUILD_TARGETS.
build_preset () {
    local preset=$1 log=$LOGS/build-$1.log dir=$ROOT/build/$1
    shift
    mkdir -p "$LOGS"
    step "build: preset $preset into ${dir#"$ROOT"/}"
    if ! (cd "$ROOT" && cmake --preset "$preset" "$@") >"$log" 2>&1 </dev/null; then
        tail -n 25 "$log" >&2
        die "cmake could not configure preset $preset; the whole of it is in $log"
    fi
    # shellcheck disable=SC2086 # a list of words
    if ! cmake --build "$dir" --parallel "${NUI_JOBS:-$(nproc)}" \
        ${BUILD_TARGETS:+--target $BUILD_TARGETS} >>"$log" 2>&1 </dev/null; then
        grep -nE 'error:|FAILED:|undefined reference' "$log" | head -n 25 >&2 || true
        die "preset $preset does not build; the whole of it is in $log"
    fi
}
