#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A worker's page in a browser: its script runs and shows what there is, and keys and reasons that
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

# Each would set the title if it ran. Nobody listens at port 1.
script='<script>document.title="ran"</script>'
image='<img/src=x/onerror=document.title="ran">'
for key in "$script" "$image" '"quoted"' "$(printf 'bytes\001\377')"; do
	"$BUILD/twr" add --shards 1 --key "$key" --callback http://127.0.0.1:1/ \
		--max-attempts 1 >/dev/null
done
for _ in $(seq 300); do
	case $("$BUILD/twr" stats --shards 1 --json) in
	*'"dead":4'*) break ;;
	esac
	sleep 0.1
done
redis-cli -s "$folder/redis.sock" eval '
	for _, key in ipairs(redis.call("HKEYS", KEYS[1])) do
		local letter = redis.call("HGET", KEYS[1], key)
		local head, size, rest = string.match(letter, "^(%d+:%d+):(%d+):(.*)$")
		redis.call("HSET", KEYS[1], key, head .. ":" .. #ARGV[1] .. ":" .. ARGV[1] ..
			string.sub(rest, size + 1))
	end' 1 '{tw/default/0}dead' "</td>$script$image" >/dev/null

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

# The worker reads dead letters once a page has asked for them.
for _ in $(seq 30); do
	browse --dump-dom >"$folder/page"
	! grep -qF '%01%FF' "$folder/page" || break
done
shows '<title>twr worker</title>'
shows '<span id="state" class="good">ready</span>'
shows '<dt>dead letters</dt><dd>4</dd>'
shows '<td>&lt;script&gt;document.title="ran"&lt;/script&gt;</td>'
shows '<td>&lt;img/src=x/onerror=document.title="ran"&gt;</td>'
shows '<td>"quoted"</td>'
shows '<td>bytes%01%FF</td>'
shows '<td>&lt;/td&gt;&lt;script&gt;document.title="ran"&lt;/script&gt;&lt;img/src'
shows '<path class="half"'
# shows_no_element: fails if a key or a reason became an element
shows_no_element()
{
	if test "$(grep -oi '<script' "$folder/page" | wc -l)" != 1 ||
		grep -qi '<img' "$folder/page"; then
		cat "$folder/page"
		echo "a key or a reason became an element"
		exit 1
	fi
}
shows_no_element

# There is no group yet.
shows '<section id="grouped" hidden="">'
for group in "$script" '"quoted"' "$(printf 'm\303\274')"; do
	"$BUILD/twr" add --shards 1 --key "of $group" --group "$group" --in 1h --handler >/dev/null
done
browse --dump-dom >"$folder/page"
shows '<section id="grouped">'
shows 'document.title="ran"&lt;/script&gt;</td><td>default</td><td>1</td><td>0</td>'
shows '<td>"quoted"</td><td>default</td>'
shows '<td>m%C3%BC</td><td>default</td>'
shows_no_element

browse --window-size=1000,900 --screenshot="$folder/page.png" >/dev/null
test "$(head -c 4 "$folder/page.png" | tail -c 3)" = PNG
