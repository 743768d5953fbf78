#!/bin/sh
# Gets what the stories look at the page of the admin port with: Chromium's shell without a window, or Chromium itself where that is there,
# and a font.
#
# Says what it does, and nothing when there is nothing to do.
# Usage: setup/browser.sh
set -eu

here=$(dirname "$0")
. "$here/packages.sh"

have chromium-headless-shell || have chromium || install_packages chromium-headless-shell fonts-dejavu-core
