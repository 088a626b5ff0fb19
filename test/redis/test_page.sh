#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A worker's page in a browser: its script runs and shows what there is, and names of groups that
# would be elements or scripts are text.

cd "$(dirname "$0")/../.." || exit 1
set -e
. test/support/script.sh

chromium=$(command -v chromium || command -v chromium-browser || true)
test -n "$chromium" || skip "no chromium to show the page (package chromium)"

folder=$(mktemp -d)
# shellcheck disable=SC2016 # when it ends
at_end 'kill $processes 2>/dev/null || true; wait; rm -rf "$folder"'
processes=

redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --save '' \
	>"$folder/redis.log" 2>&1 &
processes="$!"
wait_for "$folder/redis.log" redis-cli -s "$folder/redis.sock" ping
export TWR_URL="redis+unix://$folder/redis.sock"
unset TWR_PASSWORD TWR_NAMESPACE

"$BUILD/twr" worker --shards 1 --listen 127.0.0.1:0 >"$folder/worker.log" 2>&1 &
processes="$processes $!"
wait_for "$folder/worker.log" grep -e 'the worker runs' "$folder/worker.log"
page=$(sed -n 's/.*listens on //p' "$folder/worker.log")

# Each would set the title if it ran.
script='<script>document.title="ran"</script>'
image='<img/src=x/onerror=document.title="ran">'

# browse OPTION...: loads the page and lets it refresh a few times. Only root needs --no-sandbox.
browse()
{
	root=
	test "$(id -u)" != 0 || root=--no-sandbox
	# shellcheck disable=SC2086 # one word, or none
	timeout 200 "$chromium" --headless $root --disable-gpu --disable-dev-shm-usage \
		--no-first-run --disable-background-networking --disable-component-update \
		--user-data-dir="$folder/profile" --virtual-time-budget=5000 "$@" "$page" \
		2>"$folder/chromium.log" || { cat "$folder/chromium.log"; return 1; }
}

# shows TEXT: fails unless the document has it
shows()
{
	if ! grep -qF -e "$1" "$folder/page"; then
		cat "$folder/page"
		echo "the page does not show: $1"
		exit 1
	fi
}

browse --dump-dom >"$folder/page"
shows '<title>twr worker</title>'
shows '<span id="state" class="good">ready</span>'
shows '<h2>Tasks in Redis: default</h2>'
shows '<dt>scheduled</dt><dd>0</dd>'
shows '<dt>put off</dt><dd>0</dd>'

# shows_no_element: fails if a group became an element
shows_no_element()
{
	if test "$(grep -oi '<script' "$folder/page" | wc -l)" != 1 ||
		grep -qi '<img' "$folder/page"; then
		cat "$folder/page"
		echo "a group became an element"
		exit 1
	fi
}
shows_no_element

# There is no group yet.
shows '<section id="grouped" hidden="">'
for group in "$script" "$image" '"quoted"'; do
	"$BUILD/twr" add "of $group" --shards 1 --group "$group" --in 1h --handler >/dev/null
done
browse --dump-dom >"$folder/page"
shows '<section id="grouped">'
shows '&lt;script&gt;document.title="ran"&lt;/script&gt;</td><td>default</td><td>1</td>'
shows '<td>&lt;img/src=x/onerror=document.title="ran"&gt;</td>'
shows '<td>"quoted"</td>'
shows_no_element

browse --window-size=1000,900 --screenshot="$folder/page.png" >/dev/null
test "$(head -c 4 "$folder/page.png" | tail -c 3)" = PNG
