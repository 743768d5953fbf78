# Unpacks packages of one of the distribution's suites into a private folder: sourced, after packages.sh.
#
# For programs that this machine's suite lacks, or whose packages would start a service. Nothing is installed: the
# packages are unpacked side by side with all they need, the C library too, and started through the folder's own
# loader (see lab/src/private_server/unpacked.rs).

complete() { [ -e "$1/.complete" ]; }

# unpack_packages FOLDER SUITE PROGRAM PACKAGE...    PROGRAM is a path in FOLDER that has to be there afterwards.
# With alone=yes nothing that the packages need comes with them.
unpack_packages() {
    prefix=$1 suite=$2 program=$3
    shift 3
    if ! have apt-get || ! have dpkg; then
        say "$* is unpacked from Debian packages, and this machine has no apt-get and dpkg"
        return 1
    fi
    # Debian's own, if it is there: machines have repositories of others as well, such as MariaDB's or MySQL's.
    mirror=$(mirrors 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || mirror=$(mirrors | head -n 1)
    if [ -z "$mirror" ]; then
        say "apt knows no package mirror: run apt-get update first"
        return 1
    fi
    work="$prefix.partial"
    rm -rf "$work" "$prefix"
    private_apt &&
        say "reading the package list of the suite $suite (private, nothing is installed)" &&
        private apt-get update &&
        download "$@" &&
        say "unpacking into $prefix" &&
        unpack || return 1
    [ -x "$work/root/$program" ] || { say "the packages did not hold $program"; return 1; }
    mv "$work/root" "$prefix"
    rm -rf "$work"
    touch "$prefix/.complete"
    say "$prefix is ready"
}

mirrors() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "$@" | grep -v -i -E 'security|backports'
}

private_apt() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/deb" "$work/root" || return 1
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keyring] $mirror $suite main" > "$work/apt/sources.list"
    : > "$work/apt/status"
    # Some machines clean their own apt folders after each update: this one is none of theirs.
    echo '#clear APT::Update::Post-Invoke; #clear DPkg::Post-Invoke;' > "$work/apt/conf"
}

# Every option keeps apt inside the private folder: the machine's own lists stay as they are.
private() {
    tool=$1
    shift
    "$tool" -qq -c "$work/apt/conf" \
        -o Dir::Etc::sourcelist="$work/apt/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/apt/lists" \
        -o Dir::State::status="$work/apt/status" \
        -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root \
        -o Acquire::Retries=3 \
        "$@"
}

download() {
    if [ "${alone:-no}" = yes ]; then
        (cd "$work/deb" && private apt-get download "$@")
        return
    fi
    # perl is wanted by maintenance scripts only, never by the programs.
    names=$(private apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
            --no-breaks --no-replaces --no-enhances "$@" \
        | grep -E '^[a-z0-9]' | cut -d: -f1 | sort -u | grep -v -E '^(perl|libperl|perl-.*|debconf.*)' || true)
    # Virtual packages have no entry of their own; the tool complains of them and shows the rest.
    wanted=$(private apt-cache show --no-all-versions $names 2>/dev/null | sed -n 's/^Package: //p' | sort -u)
    say "downloading $(echo "$wanted" | wc -w) packages"
    (cd "$work/deb" && private apt-get download $wanted)
}

unpack() {
    # /lib and /bin are links into /usr here, whatever a suite's packages still have: one path to each library.
    mkdir -p "$work/root/usr/lib" "$work/root/usr/lib64" "$work/root/usr/bin" "$work/root/usr/sbin" || return 1
    for part in lib lib64 bin sbin; do ln -s "usr/$part" "$work/root/$part"; done
    for deb in "$work"/deb/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$work/root" || return 1
    done
}
