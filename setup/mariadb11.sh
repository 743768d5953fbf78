#!/bin/sh
# Unpacks MariaDB 11.8 LTS, server and client, into a private folder: its clients verify a server's certificate by the
# account's password, and it has plugins that the distribution's own release may lack.
#
# Usage: setup/mariadb11.sh FOLDER      Prints nothing when FOLDER is already complete.
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
prefix=${1:?usage: setup/mariadb11.sh FOLDER}
# The last one for the server's plugins.
complete "$prefix" || unpack_packages "$prefix" trixie usr/sbin/mariadbd \
    mariadb-server-core mariadb-client-core mariadb-server
