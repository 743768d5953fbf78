#!/bin/sh
# Unpacks what MariaDB's server needs to be a node of a Galera cluster: the provider (a library), and the scripts of state transfers.
#
# Those scripts are in the package that would start a service, so nothing of it is installed; the server itself is the distribution's,
# and so is the release that is unpacked.
# Usage: setup/galera.sh FOLDER      Prints nothing when FOLDER is already complete.
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
prefix=${1:?usage: setup/galera.sh FOLDER}
have rsync || install_packages rsync
# What the library needs is there where the server is.
alone=yes
complete "$prefix" || unpack_packages "$prefix" "$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")" \
    usr/bin/wsrep_sst_rsync galera-4 mariadb-server

# Where root runs it, the daemon that takes a transfer would write as nobody, and may not: it writes as whoever runs the server.
script="$prefix/usr/bin/wsrep_sst_rsync"
grep -q '^uid = ' "$script" || sed -i 's/^use chroot = no$/&\nuid = $(id -u)\ngid = $(id -g)/' "$script"
