# What the scripts of this folder share: sourced by them, never run.

say() { echo "setup${HEADWATER_SETUP_STEP:+ ($HEADWATER_SETUP_STEP)}: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        say "this needs root, and there is no sudo here: as root, run: $*"
        return 1
    fi
}

install_packages() {
    if ! have apt-get; then
        say "$* missing, and this machine has no apt-get: install them and run this again"
        return 1
    fi
    say "installing $* from the distribution's packages"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Acquire::Retries=3 update >/dev/null || return 1
    # What others have installed stays: MySQL's own clients, for one, conflict with MariaDB's.
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
        install -y --no-install-recommends --no-remove "$@" >/dev/null && return
    say "could not install $*: if apt would have to remove packages for them (see above), do that yourself, or use another machine"
    return 1
}
