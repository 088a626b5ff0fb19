# The pages of twr worker --listen: methods, hosts, escaped texts, and figures that add up. The pages
# of another worker answer callbacks: /healthz with 200, and /nothing with 404; those of a third one,
# whose loop always stands for longer than it may, answer /healthz with 503.

== Each page is there with its headers, and loads nothing from elsewhere.
$ serve() {
>         worker=$1; shift; start $worker twr worker --listen 127.0.0.1:0 "$@"; await $worker 'the worker runs' || return
>         host=$(grep -o '127.0.0.1:[0-9]*' $folder/$worker | head -n 1)
> }
$ worker() { serve worker "$@"; wait_for $folder/worker answers 200 /readyz; }
$ get() { path=$1; shift; curl -s "$@" "http://$host$path"; }
$ status() { get "$@" -o $folder/page -w '%{http_code}\n'; }
$ answers() { test "$(status "$2")" = "$1"; }
$ shows() { get /metrics | grep -qxF -e "$1"; }
$ come() { for figure; do wait_for $folder/worker shows "$figure" || return; done; }
# Sends what it reads, as it is.
$ ask() { timeout 30 bash -c 'exec 3<>/dev/tcp/${1%:*}/${1#*:}; cat >&3; cat <&3' ask $host; }
$ serve pages --namespace pages; pages=$started good=http://$host
$ serve sick --namespace sick --health-limit 1ms; bad=http://$host
$ worker
$ for page in / '/?a=b' /status.json /metrics /healthz /readyz; do
>         get $page -D - -o $folder/page; test -s $folder/page || echo empty
> done | tr -d '\r' >$folder/heads
$ grep Content-Type: $folder/heads
Content-Type: text/html; charset=utf-8
Content-Type: text/html; charset=utf-8
Content-Type: application/json
Content-Type: text/plain; version=0.0.4; charset=utf-8
Content-Type: text/plain; charset=utf-8
Content-Type: text/plain; charset=utf-8
$ grep "200\|^X-C.*-Options: nos\|^Cache\|^Content-S" $folder/heads | sed 's/256-.*/256/' | sort | uniq -c
*6 Cache-Control: no-store
*6 Content-Security-Policy: default-src 'none'; script-src 'sha256
*6 HTTP/1.1 200 OK
*6 X-Content-Type-Options: nosniff
1$ grep -i 'empty\|unsafe\|^Set-Cookie' $folder/heads
# The name of SVG's elements is the only URL.
1$ get / | grep 'https:\|src=\|href=\|innerHTML\|url('
$ get /metrics -I | tr -d '\r' | grep -v ': [^n]'
HTTP/1.1 200 OK
X-Content-Type-Options: nosniff
Referrer-Policy: no-referrer
Cache-Control: no-store

== Other methods and paths are refused.
$ for method in POST PUT DELETE PATCH get OPTIONS TRACE X; do status / -X $method; done | uniq
405
$ get / -X POST -D - | tr -d '\r' | grep ^Allow:
Allow: GET, HEAD
$ for path in /metrics/ /Metrics // /page.html /../etc/passwd; do status $path --path-as-is; done | uniq
404
$ status / --request-target http://127.0.0.1/metrics
404
$ end

== Only named hosts are answered.
$ worker --listen-host=wheel.example --listen-host 2001:db8::7
$ for named in 127.0.0.1 127.0.0.1:1 localhost:9464 LocalHost [::1]:9464 wheel.example \
>         Wheel.Example:80 [2001:db8::7]:80 localhost: 127.0.0.2 10.244.0.5:9464 '[fe80::1]'; do
>         status /metrics -H "Host: $named"
> done | uniq
200
$ for named in evil.example localhost.evil.example evil.example:127.0.0.1 localhost:80:80 \
>         localhost:x 127.0.0.1.evil.example:9464 10.244.0 10.244.0.5.evil.example \
>         '[2001:db8::7' :80 []; do
>         status /metrics -H "Host: $named"
> done | uniq
421
$ status /metrics -H 'Host;'; status / -X POST -H 'Host: evil.example'; status / -0 -H Host:
421
421
421
$ status / -0 -H 'Host: localhost'
200
# A probe names the address of a container, a service, or no host.
$ for page in /readyz /healthz; do
>         status $page -H 'Host: evil.example'; status $page -H 'Host;'
>         status $page -H 'Host: twr.default.svc:9464'; status $page -0 -H Host:
> done | uniq -c
*8 200

== Bad requests are refused and harm nobody.
1$ printf '\0\1\2\377 GET / / / HTTP/7\r\n\r\n\r\n\r\n' | ask | grep '200 OK'
1$ { printf 'GET /'; head -c 1000000 /dev/zero | tr '\0' a; } | ask 2>&1 | grep '200 OK'
1$ { printf 'GET / HTTP/1.1\r\nHost: localhost\r\nA: '; head -c 1000000 /dev/zero | tr '\0' a; } | ask 2>&1 | grep '200 OK'
# The worker does not wait for the body.
$ printf 'GET /healthz HTTP/1.0\r\nContent-Length: 1000000\r\n\r\nabc' | ask | head -n 1
HTTP/1.1 200 OK*
$ status /healthz
200

== Silent connections hold nobody up for long.
$ silent() { timeout 30 bash -c 'for _ in $(seq 40); do exec {each}<>/dev/tcp/${1%:*}/${1#*:}; done; cat <&$each' silent $host & }
$ silent; sleep 0.2; status /healthz --max-time 4
200
# These are more than it serves at a time: they are closed, and then there is room again.
$ first=$!; silent; wait_for $folder/worker answers 200 /healthz; wait $first; wait $!
$ end

== Figures add up with those of Redis.
$ call() { twr add "$1" --method GET --callback "$2" --max-attempts "$3"; }
$ run_some() {
>         for key in 1 2 3 4 5; do call good-$key $good/healthz 1; done
>         call bad-1 $good/nothing 8; call bad-2 $good/nothing 8; call hopeless $bad/healthz 3
>         twr add later --in 1h --handler
> }
$ run_some; worker --retry-first=10ms
$ come 'twr_dead_total 3' 'twr_tasks{state="dead"} 3' 'twr_done_total 5' 'twr_retried_total 2'
$ come 'twr_claimed_total 10' 'twr_held_tasks 0' 'twr_running_tasks 0' 'twr_redis_up 1'
$ come 'twr_redis_reconnects_total 0' 'twr_tasks{state="scheduled"} 1' 'twr_tasks{state="started"} 0'
$ come 'twr_due_tasks 0' 'twr_added_total 9'
$ get /metrics >$folder/metrics; grep -c 'twr_redis_round_trips_total [1-9]' $folder/metrics
1
1$ grep twr_group $folder/metrics
$ twr stats --json
{"tasks":1,"scheduled":1,"started":0,"dead":3,"due":0,"recurring":0,"added":9,*
$ for name in lateness duration; do
>         grep "twr_${name}_seconds_\(count\|bucket.*Inf\)" $folder/metrics
>         grep -c "^twr_${name}_seconds_sum .*[1-9]" $folder/metrics
>         sed -n "s/^twr_${name}_seconds_bucket.* //p" $folder/metrics | sort -nc
> done
twr_lateness_seconds_bucket{le="+Inf"} 10
twr_lateness_seconds_count 10
1
twr_duration_seconds_bucket{le="+Inf"} 10
twr_duration_seconds_count 10
1
$ sed -n 's/^twr_duration_seconds_bucket{le="\(.*\)"}.*/\1/p' $folder/metrics | paste -sd' '
0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60 120 300 +Inf
$ if command -v promtool >/dev/null; then promtool check metrics <$folder/metrics; fi
$ end

== Names of groups are labels, whatever they are.
$ twr add c --in 1h --handler --group '<script>"a\b{}'; twr add d --in 1h --handler --group '<script>"a\b{}'
$ twr add e --in 1h --handler --group "$(printf '\303\251\342\200\256%% x')"
# Another program has written this turn. It never comes, so no claim looks at it.
$ redis zadd "{tw/$TWR_NAMESPACE/0}turns" 9e15 "$(printf '\377')"
$ printf "ZADD {tw/$TWR_NAMESPACE/0}queue 0 \"\\\\xff\\\\x00000000000000007%d\"\n" 1 2 3 | redis
$ worker
$ come 'twr_group_waiting_tasks{group="%FF"} 3' 'twr_group_waiting_tasks{group="<script>\"a\\b{}"} 2'
$ come 'twr_group_waiting_tasks{group="%C3%A9%E2%80%AE%25%20x"} 1' 'twr_group_running_tasks{group="%FF"} 0'
$ come 'twr_group_oldest_due_age_seconds{group="%C3%A9%E2%80%AE%25%20x"} 0'
$ get /metrics | grep -c 'twr_group_oldest_due_age_seconds{group="%FF"} [1-9][0-9.e+]\{9\}'
1
$ get /status.json >$folder/json; sed 's/.*"groups"//' $folder/json
:[{"waiting":3,*"group_base64":"/w=="*},{"waiting":2,*"group":"<script>\"a\\b{}"*},{"waiting":1,*"group":"\u00E9\u202E% x"*}]}
# The text is ASCII, whatever it contains.
1$ grep '[^ -~]' $folder/json
$ end

== No more than 20 groups are labels.
$ seq 30 | sed 's/.*/{"key":"&","group":"g&","in":"1h"}/' | twr load -
$ twr add more --in 1h --handler --group g29
$ worker; come 'twr_group_waiting_tasks{group="g29"} 2'
$ get /metrics | grep -c '^twr_group_waiting_tasks'
20
$ end

== A lost Redis is not ready, and has no figures.
$ server other --appendonly yes
$ unset TWR_NAMESPACE; TWR_URL="redis+unix://$folder/other.sock?timeout=3" other=${processes##* }
$ worker; kill -9 $other; wait_for $folder/worker answers 503 /readyz
$ until get /readyz | grep 'Connection refused'; do sleep 0.1; done
Redis is unavailable: *Connection refused*
$ come 'twr_redis_up 0'; for page in /healthz /status.json; do status $page; done
200
200
1$ get /metrics | grep 'twr_tasks{'
$ server other --appendonly yes
$ other=${processes##* }; wait_for $folder/worker answers 200 /readyz
$ come 'twr_redis_up 1' 'twr_tasks{state="scheduled"} 0'
$ get /metrics | grep 'losses_total \|reconnects_total ' | sed '/^#/d; s/.* //' | sort -u | grep -c '[1-9]'
1
# A namespace that is not named is shown as the default.
$ get /status.json
*"tasks":[{*"namespace":"default"}],"runs":[{*"namespace":"default"}],"groups":[]}

== A page waits for a silent Redis as long as a reply may take, and delays no probe of the loop.
# The answer is no longer fresh.
$ TWR_URL="redis+unix://$folder/other.sock?timeout=3"; sleep 1.1; kill -STOP $other
$ get /readyz -o /dev/null -w '%{http_code} %{time_total}' >$folder/slow & slow=$!
$ for _ in 1 2 3 4 5; do status /healthz --max-time 2.8; done | uniq
200
$ wait $slow; awk '$1 == 503 && $2 >= 2.9 && $2 < 20 { print "in time" }' $folder/slow
in time
$ kill -CONT $other; wait_for $folder/worker answers 200 /readyz; end
$ TWR_URL="redis+unix://$folder/own.sock"

== A worker that ends is healthy and not ready.
$ kill -STOP $pages; call slow $good/healthz 1; worker --grace=1m; come 'twr_running_tasks 1'
$ kill $started; wait_for $folder/worker answers 503 /readyz
$ get /readyz
the worker is stopping
$ for page in /healthz /status.json; do status $page; done | uniq
200
$ kill -CONT $pages; wait $started

== A loop that stands is not healthy.
$ host=${bad#http://}; wait_for $folder/sick answers 503 /healthz

== Redis is asked once a second if somebody looks, and else never.
# Only the counting of tasks calls HLEN, four times for each shard.
$ counted() { redis info commandstats | sed -n 's/^cmdstat_hlen:calls=\([0-9]*\).*/\1/p'; }
$ worker; before=$(counted) began=$(date +%s)
$ until test $(($(date +%s) - began)) -ge 3 && test $(($(counted) - before)) -ge 8; do
>         get /metrics; get /status.json; sleep 0.02
> done >$folder/looked
$ test $((($(counted) - before) / 4)) -le $(($(date +%s) - began + 2))
$ sleep 0.1; before=$(counted); for _ in $(seq 25); do status /healthz; sleep 0.05; done | uniq
200
$ test $(counted) = $before; end

== Each namespace has its own figures, which are those of twr stats.
$ one=$TWR_NAMESPACE two=$TWR_NAMESPACE.2
$ come() {
>         for figure; do
>                 figure=$(echo "$figure" | sed "s/1st/namespace=\"$one\"/; s/2nd/namespace=\"$two\"/")
>                 wait_for $folder/worker shows "$figure" || return
>         done
> }
$ run_some; export TWR_NAMESPACE=$two; call good $good/healthz 1; call bad $good/nothing 1
$ twr add g --in 1h --handler --group g
$ worker --namespace=$one,$two --retry-first=10ms
$ come 'twr_dead_total{1st} 3' 'twr_done_total{1st} 5' 'twr_tasks{1st,state="dead"} 3' 'twr_added_total{1st} 9'
$ come 'twr_dead_total{2nd} 1' 'twr_done_total{2nd} 1' 'twr_tasks{2nd,state="dead"} 1' 'twr_added_total{2nd} 3'
$ come 'twr_claimed_total{1st} 10' 'twr_claimed_total{2nd} 2' 'twr_held_tasks{1st} 0' 'twr_due_tasks{2nd} 0'
$ come 'twr_lateness_seconds_count{1st} 10' 'twr_duration_seconds_bucket{2nd,le="+Inf"} 2'
$ come 'twr_tasks{1st,state="scheduled"} 1' 'twr_group_waiting_tasks{2nd,group="g"} 1'
# The worker's own figures have no namespace, and each is described once.
$ twr limits --pause; come 'twr_paused{2nd} 1' 'twr_redis_up 1'
$ get /metrics >$folder/metrics; grep -c '# TYPE twr_done_total ' $folder/metrics
1
$ if command -v promtool >/dev/null; then promtool check metrics <$folder/metrics; fi
$ { get /status.json; echo; } >$folder/json
$ row() { sed "s/.*\"$1\":\[//; s/\].*//; s/},{/}\n{/g" $folder/json | sed -n "$2p" | sed 's/"now":[^,}]*,*//'; }
$ stats() { twr stats --json --namespace $1 | sed 's/"now":[^,}]*//; s/}$/"namespace":"'$1'"}/'; }
$ stats $one >$folder/stats; row tasks 1 | diff $folder/stats -
$ stats $two >$folder/stats; row tasks 2 | diff $folder/stats -
$ row tasks 2
*"paused":true,*
$ row runs 1; row runs 2
{"claimed":10,"done":5,*"dead":3,*"namespace":"case-*"}
{"claimed":2,"done":1,*"dead":1,*"namespace":"case-*.2"}

== Workers of a namespace are listed, also those that serve others.
$ one=$TWR_NAMESPACE two=$TWR_NAMESPACE.2; export TWR_NAMESPACE=$two; end; worker --namespace=$one,$two
$ redis zadd "{tw/$two}present" $(($(date +%s) + 25))000 other
$ redis hset "{tw/$two}workers" other "$(printf '<b>\033[2J 5000 1 2 3 4 5')"
$ listed() { for name in $one $two; do twr workers --namespace $name | grep -q ":$started$" || return; done; }
$ wait_for $folder/worker listed; twr workers | grep '<b>'
    5.00 s *         1         2         3         4         5  <b>%1B[2J
