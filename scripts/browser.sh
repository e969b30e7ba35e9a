#!/usr/bin/env bash
# Get the browser that the tests of the page use: Debian's chromium. Does nothing where there is one, or no way to get one;
# the tests of the page are then skipped and say so.
set -euo pipefail
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "There is no chromium and no apt-get here: the tests of the page will be skipped." >&2
    exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "There is no chromium here, and installing it needs root: the tests of the page will be skipped." >&2
        exit 0
    fi
    as_root=(sudo -n)
fi
echo "Installing chromium for the tests of the page (once)"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core)
"${install[@]}" >/dev/null 2>&1 ||
    { "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 && "${install[@]}" >/dev/null 2>&1; } ||
    echo "Installing chromium did not work: the tests of the page will be skipped." >&2
