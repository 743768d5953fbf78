#!/bin/sh
# Gets the relays that `make bench-relay` measures Headwater beside: HAProxy 2.6 and MySQL Router 9.7, each unpacked into
# a private folder.
#
# Says what it does, and nothing when there is nothing to do. No service is installed or started, as HAProxy's package
# would do it; the suites are named so that the figures are of the same versions everywhere.
# Usage: setup/relays.sh
# Environment: HEADWATER_HAPROXY_PREFIX         the folder of HAProxy (default: ~/.cache/headwater/haproxy-2.6)
#              HEADWATER_MYSQL_ROUTER_PREFIX    that of MySQL Router (default: ~/.cache/headwater/mysql-router-9.7)
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
router=${HEADWATER_MYSQL_ROUTER_PREFIX:-$HOME/.cache/headwater/mysql-router-9.7}

"$here/haproxy.sh"
complete "$router" || unpack_packages "$router" sid usr/bin/mysqlrouter mysql-router
