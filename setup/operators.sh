#!/bin/sh
# Gets what the stories check operators' files with: promtool (metrics, alerts, the board), from the distribution's package of
# Prometheus, unpacked into a private folder; and systemd-analyze (the unit), of the distribution's systemd.
#
# Says what it does, and nothing when there is nothing to do. Prometheus is not installed: its package would start a service.
# Usage: setup/operators.sh
# Environment: HEADWATER_PROMETHEUS_PREFIX      the folder (default: ~/.cache/headwater/prometheus-2.42)
set -eu

here=$(dirname "$0")
. "$here/packages.sh"
. "$here/unpack.sh"
prefix=${HEADWATER_PROMETHEUS_PREFIX:-$HOME/.cache/headwater/prometheus-2.42}

have systemd-analyze || install_packages systemd

# The program needs the C library alone, and takes this machine's.
alone=yes
complete "$prefix" || unpack_packages "$prefix" bookworm usr/bin/promtool prometheus
