#!/usr/bin/env bash
# What building and running the image does, without containers: install into an empty folder, take away every right to write,
# start as another user, ask and vote over HTTP, stop in order, verify the votes. Needs root for the other user; without, it stays.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
cleanup() {
    [ -z "${service:-}" ] || kill "$service" 2>/dev/null || true
    chmod -R u+w "$folder" && rm -rf "$folder"
}
trap cleanup EXIT
"$here/build.sh" "$folder/duelist"
chmod 0755 "$folder"
chmod -R a-w "$folder/duelist"
mkdir -m 0700 "$folder/data"
as_other=()
if [ "$(id -u)" -eq 0 ]; then
    chown nobody "$folder/data"
    as_other=(setpriv --reuid=nobody --clear-groups)
fi
bin=$folder/duelist/venv/bin
export NUMBA_CACHE_DIR=$folder/duelist/kernels PYTHONDONTWRITEBYTECODE=1 HOME=$folder/data DUELIST_ADMIN_KEY=only-for-this-check-0123456789
cd "$folder/data"
"${as_other[@]}" "$bin/duelist" serve --demo --port 0 --data "$folder/data/votes.db" --log-format json >out 2>err &
service=$!
for _ in $(seq 120); do
    address=$(sed -n 's/^Listening on \(http:[^ ]*[0-9]\)\. .*/\1/p' out)
    [ -z "$address" ] || break
    sleep 0.5
done
[ -n "$address" ] || { cat out err >&2; exit 1; }
"$bin/python" - "$address" <<'PYTHON'
import sys

from duelist.service import Client

with Client(sys.argv[1], "only-for-this-check-0123456789") as client:
    for _ in range(5):
        ask = client.ask("demo")
        client.tell_winner(ask, ask.left)
    assert sum(row["wins"] for row in client.leaderboard("demo")) == 5
PYTHON
kill -TERM "$service"
wait "$service" || true
service=
"$bin/duelist" verify "$folder/data/votes.db"
compiled=$(find "$folder/data" -name '*.nbc' | wc -l)
[ "$compiled" -eq 0 ] || { echo "$compiled kernels were compiled at run time" >&2; exit 1; }
echo "The steps of the image work."
