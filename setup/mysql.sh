#!/bin/sh
# Unpacks MySQL 9.7 LTS into a private folder, with its own C library and loader.
#
# The distribution's unstable suite carries it; that suite's C library does not fit
# this machine, so nothing is installed (see unpack.sh).
# Usage: setup/mysql.sh FOLDER      Prints nothing when FOLDER is already complete.
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
prefix=${1:?usage: setup/mysql.sh FOLDER}
complete "$prefix" || unpack_packages "$prefix" sid usr/sbin/mysqld mysql-server-core mysql-client-core
