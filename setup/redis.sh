#!/bin/sh
# Gets Redis 7.0, unpacked into a private folder: for `headwater bench strategies`, which measures timelines kept in it.
#
# Says what it does, and nothing when there is nothing to do. No service is installed or started, as Redis' package
# would do it; the suite is named so that it is the same version everywhere.
# Usage: setup/redis.sh
# Environment: HEADWATER_REDIS_PREFIX         the folder (default: ~/.cache/headwater/redis-7.0)
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
redis=${HEADWATER_REDIS_PREFIX:-$HOME/.cache/headwater/redis-7.0}

complete "$redis" || unpack_packages "$redis" bookworm usr/bin/redis-server redis-server
