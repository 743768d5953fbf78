#!/bin/sh
# Unpacks Spider, the storage engine that spreads a MariaDB table over several servers, into a private folder.
#
# The distribution's own package, of the very version of the installed MariaDB: a server loads no storage engine of another one.
# It is unpacked and not installed, since its package would bring the service along.
#
# Usage: setup/spider.sh FOLDER      Prints nothing when FOLDER is already complete.
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
prefix=${1:?usage: setup/spider.sh FOLDER}
have apt-get && have dpkg-query || { say "Spider is unpacked from a Debian package, and this machine has no apt-get and dpkg"; exit 1; }
version=$(dpkg-query -W -f '${Version}' mariadb-server-core 2>/dev/null) || version=
[ -n "$version" ] || { say "MariaDB is not here from the distribution's packages: no Spider for it"; exit 1; }
[ "$(cat "$prefix/.complete" 2>/dev/null)" = "$version" ] && exit 0

work="$prefix.partial"
rm -rf "$work" "$prefix"
mkdir -p "$work/deb" "$work/root"
download() { (cd "$work/deb" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download "mariadb-plugin-spider=$version"); }
say "downloading mariadb-plugin-spider $version"
if ! download 2>/dev/null; then
    as_root apt-get -qq -o Acquire::Retries=3 update >/dev/null && download || {
        say "the distribution has no mariadb-plugin-spider $version: upgrade mariadb-server-core"
        exit 1
    }
fi
dpkg-deb --fsys-tarfile "$work"/deb/*.deb | tar -x -C "$work/root"
library=$(find "$work/root" -name ha_spider.so | head -n 1)
[ -n "$library" ] || { say "the package did not hold ha_spider.so"; exit 1; }
mkdir -p "$prefix"
mv "$library" "$prefix/ha_spider.so"
rm -rf "$work"
echo "$version" > "$prefix/.complete"
say "$prefix is ready"
