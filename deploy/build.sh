#!/usr/bin/env bash
# Install the service into a folder, with every kernel compiled, so that it runs from a disk that nobody can write to.
# The image is built with it; on a machine without containers it is the installation.
#     deploy/build.sh /opt/duelist
set -euo pipefail
if [ $# -ne 1 ]; then
    echo "usage: deploy/build.sh FOLDER" >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
mkdir -p "$folder"
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$source/deploy/constraints.txt" "$source[serve,postgres]"
NUMBA_CACHE_DIR="$folder/kernels" "$folder/venv/bin/duelist" warm-up
# Readable by the user that runs it, writable by none.
chmod -R a+rX,go-w "$folder"
