#!/bin/sh
# Gets HAProxy 2.6, unpacked into a private folder: for the stories of several Headwaters behind one address, and for
# `make bench-relay`.
#
# Says what it does, and nothing when there is nothing to do. No service is installed or started, as HAProxy's package
# would do it; the suite is named so that it is the same version everywhere.
# Usage: setup/haproxy.sh
# Environment: HEADWATER_HAPROXY_PREFIX         the folder (default: ~/.cache/headwater/haproxy-2.6)
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
haproxy=${HEADWATER_HAPROXY_PREFIX:-$HOME/.cache/headwater/haproxy-2.6}

complete "$haproxy" || unpack_packages "$haproxy" bookworm usr/sbin/haproxy haproxy
