#!/bin/sh
# Gets promtool, by which the stories check metrics, alerts and the board: from the distribution's package of Prometheus,
# unpacked into a private folder.
#
# Says what it does, and nothing when there is nothing to do. Nothing is installed: the package would start a service.
# Usage: setup/promtool.sh
# Environment: HEADWATER_PROMETHEUS_PREFIX      the folder (default: ~/.cache/headwater/prometheus-2.42)
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
prefix=${HEADWATER_PROMETHEUS_PREFIX:-$HOME/.cache/headwater/prometheus-2.42}

# The program needs the C library alone, and takes this machine's.
alone=yes
complete "$prefix" || unpack_packages "$prefix" bookworm usr/bin/promtool prometheus
