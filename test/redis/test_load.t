# These are the lines that twr load takes and refuses. It is the inverse of the lists.

== Lines become tasks.
$ printf '{"key":"a","in":"1h","callback":"http://shop.example/","method":"PUT","headers":["X-Shop: 7"],"body":"[1]","max_attempts":3}\r\n' >$folder/lines
$ cat >>$folder/lines <<'end'
>
>   {"key_base64": "Yg==", "due": "2070-01-01T00:00:00.5Z", "body_base64": "/+8="}
> {"key":"c","due_ms":3155760000123,"due":"1971-01-01T00:00:00Z"}
> {"key":"e","in":"1h","latest":"90s"}
> {"key":"d"}
> end
$ twr load $folder/lines
5 added, 0 refused
$ left() { twr get "$1" | awk '$1 == "due_ms" { due = $2 } $1 == "now_ms" { print int((due - $2 + 20000) / 60000) }'; }
$ for key in d e a; do left $key; done
0
1
60
$ twr get a --json
{"key":"a",*"max_attempts":3,*"callback":"http://shop.example/","method":"PUT","headers":["X-Shop: 7"],"body":"[1]"}
$ twr get b --json
{"key":"b",*"due":"2070-01-01T00:00:00.500Z",*"body_base64":"/+8="}
$ twr get c --json
*"due_ms":3155760000123,*
$ printf '{"key":"f","in":"1h"}' | twr load - --json
{"added":1,"refused":0}

== Bad lines are reported by their numbers, and those between them are added.
65$ awk '{ print; print "{\"key\":\"good-" NR "\",\"in\":\"1h\"}" }' <<'end' | twr load -
> nonsense
> {"key":"z","\u001b[0m":1}
> {"key":"z","latest":"1s","every_ms":1000}
> {"key":"z","state":"pending","due_ms":1,"every_ms":1,"occurrence_ms":-1}
> {"key":"z","state":"pending","due_ms":1,"cron":"@never"}
> {"key":"z","state":"dead","due_ms":1,"callback":"ftp://a/"}
> {"key":"z","callback":"ftp://a/"}
> {"key":"z","callback":"http:///"}
> {"key":"z","headers":["X: y"]}
> {"key":"z","every_ms":1000,"cron":"@daily"}
> {"key":"z","cron":1}
> {"key":"z","cron":"@daily","zone":[]}
> {"key":"z","cron":"@daily","zone":"No/Where"}
> {"key":"z","zone":"UTC"}
> {"key":"z","callback":"http://a/","headers":["Tw-Key: y"]}
> {"group":"g","running":-1}
> {"group":"g","paused":1}
> {"group":"g","body":""}
> {"group":"g","weight":1001}
> {"group":"","weight":2}
> {"key":"z","paused":true}
> [1]
> {"key":1}
> {"key":"z","max_attempts":"1"}
> {"key":"z","callback":"http://a/","headers":7}
> {"group":"g","rate":"0/1s"}
> {"group":"g","paused":false}
> end
twr: line 1: the line is not JSON*
twr: line 3: there is no field "%1B[0m"
twr: line 7: "occurrence_ms" is not *
twr: line 21: "cron" is not *
twr: line 23: "zone" is not *
twr: line 31: "running" is not a number*
twr: line 33: "paused" is not true or false
twr: line 35: there is no field "body"
twr: line 41: there is no field "paused"
twr: line 43: the line is not a JSON object
twr: line 45: "key" is not *
twr: line 47: "max_attempts" is not a number*
twr: line 49: "headers" is not *
twr: line 51: "rate" is not *
twr: line 5: *latest is out of range, or the task recurs
twr: line 9: *the cron expression, at byte 0*
twr: line 11: *the callback's URL must begin with http:// or https://
twr: line 13: *the callback's URL must begin with http:// or https://
twr: line 15: *the URL has no host
twr: line 17: *there are headers but no callback
twr: line 19: *a cron expression excludes a period, or missed is out of range
twr: line 25: *zone*
twr: line 27: *a time zone requires a cron expression
twr: line 29: *the header Tw-Key is set by the worker
twr: line 37: invalid argument*
twr: line 39: invalid argument*
28 added, 26 refused
$ twr stats | head -n 1
tasks 27

== A line that is too long is refused, and the next goes in.
# The first body is the longest that is allowed, in its longest JSON form; the other is longer.
$ body() { seq "$1" | sed 's/.*/\\u0000/' | tr -d '\n'; }
65$ {
>         printf '{"key":"most","in":"1h","body":"%s"}\n' "$(body 262144)"
>         printf '{"key":"more","in":"1h","body":"%s"}\n' "$(body 262145)"
>         printf '{"key":"long","body":"%03145728d"}\n{"key":"next","in":"1h"}\n' 0
> } | twr load -
twr: line 3: the line is longer than 2097152 bytes
twr: line 2: *the body is larger than 262144 bytes
2 added, 2 refused
$ twr get most --json | tr -dc '\\' | wc -c
262144
$ twr get next

== A line of a NUL is not blank.
65$ printf '\0\n \t\r\n{"key":"a","in":"1h"}\n' | twr load -
twr: line 1: the line is not JSON*
1 added, 1 refused

== Many lines share a few calls.
$ calls() { redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }
$ before=$(calls); seq 2000 | sed 's/.*/{"key":"task-&","in":"1h"}/' | twr load - --shards 4
2000 added, 0 refused
# There are a call for each of the 4 shards and 256 lines, one for an unknown script, and the look
# at the server.
$ test $(($(calls) - before)) -le 40

== Modes are for all lines.
$ twr add there --in 1h --handler
$ cat >$folder/lines <<'end'
> {"key":"there","in":"2h","body":"x"}
> {"key":"new","in":"2h"}
> {"key":"new","state":"dead","due_ms":5}
> end
1$ twr load $folder/lines --new
twr: line 1: the key is already in use
2 added, 1 refused
1$ twr get there --json | grep body
$ twr list --dead
1970-01-01T00:00:00.005Z  dead *  new
$ twr drop new
$ twr cancel new
1$ twr load $folder/lines --replace
twr: line 2: there is no such task
twr: line 3: there is no such task
1 added, 2 refused
$ twr get there --json
*"body":"x"}
$ twr stats | head -n 1
tasks 1

== Wrong usage is reported.
2$ twr load
*no file is given*
2$ twr load $folder/lines a
2$ twr load ''
2$ twr load $folder/lines --in 1h
65$ twr load /no/such/file
twr: /no/such/file: No such file or directory
# A folder can be opened, but not read.
65$ twr load /
twr: / can't be read: Is a directory
0 added, 0 refused

== Lists are a backup.
$ cat >$folder/lines <<'end'
> {"key":"plain","due_ms":3155760000123}
> {"key_base64":"YQBi/w==","due_ms":3155760000124}
> {"key":"n\u0000ul","due_ms":253402300799999}
> {"key":"\u00fc \"\\%","due_ms":3155760000125,"body_base64":"AIA="}
> {"key":"text","due_ms":3155760000126,"max_attempts":1000000,"body":"a\u0000\n\u00fc"}
> {"key":"call","due_ms":3155760000127,"callback":"http://shop.example:81/a?b=\u00fc#c","method":"PATCH","headers":["X-Shop: s\u00fc\u00df","Empty:"],"body":"{}"}
> {"key":"head","due_ms":3155760000128,"callback":"https://[::1]/","method":"HEAD"}
> {"key":"group","due_ms":3155760000129,"group":"g","grace_ms":3000}
> {"key":"period","due_ms":3155760000130,"every_ms":3600000,"missed":"skip"}
> {"key":"calendar","cron":"30 4 1 * *","zone":"Asia/Tokyo","missed":"all"}
> {"key":"a\u0000","state":"dead","due_ms":1000,"reason":"odd"}
> {"key":"call","state":"dead","due_ms":1001,"attempts":7,"reason_base64":"gCByZWFzb24=","callback":"http://a/","headers":["A: b"]}
> end
$ twr load $folder/lines
12 added, 0 refused
$ lists() { { twr list --json; twr list --dead --json; } | sed 's/"now_ms":[0-9]*,//' | sort; }
$ lists >$folder/before; wc -l <$folder/before
12
$ grep -c '"every_ms":3600000,.*"missed":"skip"\|"cron":"30 4 1 \* \*","zone":"Asia/Tokyo",.*"missed":"all"\|"reason_base64":"gCByZWFzb24="\|"key_base64":"YQBi/w=="\|"body_base64":"AIA="' $folder/before
5
$ export TWR_NAMESPACE=the-copy
$ twr load $folder/before
12 added, 0 refused
$ lists | diff $folder/before -
$ twr stats --json
*"dead":2,*"recurring":2,*

== Limits come back in a copy.
$ twr limits --running=7 --rate=8/1s --pause
$ twr limits broken --pause
$ twr limits one --running=1 --weight=2 --rate=300/1h
$ twr limits --json | sort >$folder/before; wc -l <$folder/before
3
$ export TWR_NAMESPACE=limits-copy
$ twr load $folder/before
3 added, 0 refused
$ twr limits --json | sort | diff $folder/before -

== Memory is bounded, whatever the file has: here 100 MB.
$ body=$(head -c 200000 /dev/zero | tr '\0' x)
$ lines() { for i in $(seq 500); do echo "{\"key\":\"$((i % 7))\",\"in\":\"1h\",\"body\":\"$body\"}"; done; }
$ mkfifo $folder/rest; { lines; cat $folder/rest; } | twr load - >$folder/loaded & loads=$!
# The rest is opened when all lines have been taken.
$ exec 9>$folder/rest
$ test -n "$SANITIZE" || test "$(sed -n 's/^VmHWM:\(.*\)kB/\1/p' /proc/$loads/status)" -le 49152
$ exec 9>&-; wait $loads; cat $folder/loaded
500 added, 0 refused
$ twr stats | head -n 1
tasks 7

== A lost reply ends it, and the line is reported.
$ server silent
$ silent=${processes##* } TWR_URL="redis+unix://$folder/silent.sock?timeout=1"
$ { seq 256 | sed 's/.*/{"key":"&","in":"1h"}/'; cat $folder/rest; } | twr load - >$folder/loaded 2>&1 & loads=$!
$ exec 9>$folder/rest; until twr stats | grep -q 'tasks 256'; do sleep 0.01; done; kill -STOP $silent
$ seq 257 600 | sed 's/.*/{"key":"&","in":"1h"}/' >&9; exec 9>&-
75$ wait $loads
$ cat $folder/loaded
*the reply timed out
twr: line 257 and all later lines must be added again
256 added, 0 refused
# The second batch was added, and the third has not been sent.
$ kill -CONT $silent; until twr stats | grep -q 'tasks 512'; do sleep 0.01; done
$ TWR_URL="redis+unix://$folder/own.sock"

== Tasks in every condition come back as they were.
$ start pages twr worker --listen 127.0.0.1:0 --namespace pages
$ await pages 'the worker runs'
$ frozen=http://$(grep -o '127.0.0.1:[0-9]*' $folder/pages)/healthz; kill -STOP $started
$ add() { twr add "$@" --in 1h --data '[1]' --max-attempts 5; }
$ for condition in scheduled due overdue leased waiting tried moved; do
>         case $condition in leased) to=$frozen ;; *) to=http://127.0.0.1:1/ ;; esac
>         case $condition in *d) group=tenant/user ;; *) group=g ;; esac
>         add once-$condition --callback $to --group $group --latest 5h
>         add every-$condition --callback $to --every 1h --missed all --group $group
>         add cron-$condition --callback $to --cron '30 4 1 * *' --zone Asia/Tokyo --missed skip --group $group
> done
$ each() { for kind in once every cron; do twr "$1" $kind-"$2" $3; done; }
$ for condition in leased waiting tried due; do test $condition = due || each move $condition '--in 0'; done
$ start worker twr worker --verbose --retry-first 1h --retry-max 1h --lease 2h --timeout 1h
$ until test "$(grep -c '^retry ' $folder/worker)" = 6 && twr stats | grep -q 'started 9'; do sleep 0.05; done
$ kill -9 $started; each move tried '--in 0'; each move due '--in 0'; each move moved '--in 2h'
$ now=$(date +%s); lists() { twr list --json | sed 's/"now_ms":[0-9]*,//; s/"token":[0-9]*,//; s/"state":"leased"/"state":"waiting"/' | sort; }
# An outage leaves tasks overdue.
$ twr list --json | grep overdue | sed 's/"due_ms":[0-9]*/"due_ms":'$((now - 7200))123/ | sed 's/"due":"[^"]*",//' | twr load -
3 added, 0 refused
$ twr limits --pause; lists >$folder/before; wc -l <$folder/before
21
$ twr list --json | grep -c '"state":"leased".*"token":'
3
$ twr list --json >$folder/lines; for copy in second-copy $TWR_NAMESPACE; do
>         TWR_NAMESPACE=$copy twr load $folder/lines && TWR_NAMESPACE=$copy lists | diff $folder/before -
> done
21 added, 0 refused
21 added, 0 refused
$ twr stats | grep 'recurring\|started\|added'
started 9
recurring 14
added 45
# An occurrence by the calendar that has ended does not come back.
$ twr cancel cron-scheduled; twr get cron-scheduled --json | sed 's/"now_ms":[0-9]*,//' >$folder/before
$ twr list --json | twr load -; twr get cron-scheduled --json | sed 's/"now_ms":[0-9]*,//' | diff $folder/before -
