#!/bin/sh
# Unpacks MySQL 9.7 LTS into a private folder, with its own C library and loader.
#
# The distribution's unstable suite carries it; that suite's C library does not fit
# this machine, so nothing is installed: the packages are unpacked side by side and
# started through the folder's own loader (see src/demo/private_server).
# Usage: setup/mysql.sh FOLDER      Prints nothing when FOLDER is already complete.
set -eu

prefix=${1:?usage: setup/mysql.sh FOLDER}
packages="mysql-server-core mysql-client-core"
stamp="$prefix/.complete"
[ -e "$stamp" ] && exit 0

say() { echo "setup: $*" >&2; }
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    say "MySQL 9.7 is unpacked from Debian packages, and this machine has no apt-get and dpkg"
    exit 1
fi

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    | grep -v -i -E 'security|backports' | head -n 1)
if [ -z "$mirror" ]; then
    say "apt knows no package mirror: run apt-get update first"
    exit 1
fi

work="$prefix.partial"
rm -rf "$work" "$prefix"
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/deb" "$work/root"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] $mirror sid main" > "$work/apt/sources.list"
: > "$work/apt/status"
# Some machines clean their own apt folders after each update: this one is none of theirs.
echo '#clear APT::Update::Post-Invoke; #clear DPkg::Post-Invoke;' > "$work/apt/conf"
arch=$(dpkg --print-architecture)

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

say "reading the package list of the unstable suite (private, nothing is installed)"
private apt-get update

# perl is wanted by maintenance scripts only, never by the server.
names=$(private apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
        --no-breaks --no-replaces --no-enhances $packages \
    | grep -E '^[a-z0-9]' | cut -d: -f1 | sort -u | grep -v -E '^(perl|libperl|perl-.*|debconf.*)' || true)
# Virtual packages have no entry of their own; the tool complains of them and shows the rest.
wanted=$(private apt-cache show --no-all-versions $names 2>/dev/null | sed -n 's/^Package: //p' | sort -u)
say "downloading $(echo "$wanted" | wc -w) packages for $arch"
(cd "$work/deb" && private apt-get download $wanted)

say "unpacking into $prefix"
# The unstable suite keeps /lib and /bin as links into /usr; make them before unpacking.
mkdir -p "$work/root/usr/lib" "$work/root/usr/lib64" "$work/root/usr/bin" "$work/root/usr/sbin"
for part in lib lib64 bin sbin; do ln -s "usr/$part" "$work/root/$part"; done
for deb in "$work"/deb/*.deb; do dpkg -x "$deb" "$work/root"; done

[ -x "$work/root/usr/sbin/mysqld" ] || { say "the packages did not hold usr/sbin/mysqld"; exit 1; }
mv "$work/root" "$prefix"
rm -rf "$work"
touch "$stamp"
say "MySQL is ready in $prefix"
