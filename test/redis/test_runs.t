# Workers of twr print what they do, and end when they are to. The pages of another worker answer
# their callbacks: /healthz with 200, and /nothing with 404; nothing while that one is stopped.

== A worker runs and prints what was scheduled.
$ start pages twr worker --listen 127.0.0.1:0 --namespace pages
$ await pages 'the worker runs'
$ url=http://$(grep -o '127.0.0.1:[0-9]*' $folder/pages)
$ pages=$started
$ worker() { start worker "$@"; await worker 'the worker runs'; }
$ worker twr worker --verbose --retry-first=10ms
$ twr add good --in 100ms --method GET --callback $url/healthz
$ twr add bad --method GET --callback $url/nothing
$ await worker 'done     good  attempt 1/25'
$ await worker 'dead     bad  attempt 1/25'
$ await worker 'HTTP 404'
$ twr list --dead
20*Z  dead *  bad  HTTP 404
$ twr list --dead --json
{"key":"bad",*"reason":"HTTP 404"*}
$ twr retry bad
$ until test "$(grep -c '^dead ' $folder/worker)" = 2; do sleep 0.01; done
$ end
$ grep -c 'done 1, retried 0, dead 2' $folder/worker
1
$ twr drop --all
1

== A worker goes on where it was stopped.
$ worker twr worker --verbose
$ kill -STOP $started; until grep -q '^State:.*T' /proc/$started/status; do sleep 0.01; done; kill -CONT $started
$ twr add good --method GET --callback $url/healthz
$ await worker 'done     good  attempt 1/25'
$ end

== Lines of the worker are JSON if asked for.
$ worker twr worker --verbose --json
$ twr add a --method GET --callback "http://user:word@${url#http://}/healthz?secret"
$ await worker '"end"'
$ grep end $folder/worker | sed "s|$url|URL|"
{"end":"done",*"attempt":1,*"key":"a","callback":"URL","http_status":200}
$ end

== A run that is retried is printed with its time. Nothing listens there, so no answer has a status.
$ worker twr worker --verbose --retry-first=10ms
$ twr add a --max-attempts=2 --callback http://127.0.0.1:1/
$ await worker 'dead     a  attempt 2/2  '
$ grep 'retry ' $folder/worker
*retry    a  attempt 1/2  *  retry in *
$ end
$ worker twr worker --verbose --retry-first=10ms --json
$ twr add b --max-attempts=2 --callback http://127.0.0.1:1/
$ await worker '"end":"dead"'
$ grep retry $folder/worker
{"end":"retry",*"attempt":1,*"key":"b","callback":"http*","retry_in_ms":*,"reason":"*"}
$ end

== Lines of runs name the namespace where there are several.
$ worker twr worker --verbose --namespace "$TWR_NAMESPACE,$TWR_NAMESPACE.2"
$ twr add a --namespace "$TWR_NAMESPACE.2" --method GET --callback $url/healthz
$ await worker "a  namespace $TWR_NAMESPACE.2  attempt 1/25"
$ end

== A worker calls what it is allowed to.
2$ twr worker --deny 10.0.0.0/33
*or an address: 10.0.0.0/33*
2$ twr worker --allow ''
$ worker twr worker --verbose --allow '*.localhost' --deny bad.shop.localhost --deny 127.0.0.0/8 --deny ::1 --allow '*'
$ for name in 127.0.0.1 shop.localhost bad.shop.localhost; do
>         twr add $name --method GET --callback http://$name:${url##*:}/healthz
> done
$ await worker 'the address is denied: 127.0.0.1'
$ await worker 'done     shop.localhost'
$ await worker 'the host is denied: bad.shop.localhost'
$ end

== A worker ends dead letters that are too many or too old.
$ letters() { until twr stats | grep -qx "dead $1"; do sleep 0.02; done; }
$ seq 5 | sed 's/.*/{"key":"&","state":"dead","due_ms":&}/' | twr load -
$ worker twr worker --dead-max-count 2
$ letters 2
$ end
$ worker twr worker --dead-max-age 30d
$ letters 0
$ end

== A task on lease is neither cancelled nor moved. SIGTERM lets it finish.
$ slow() {
>         kill -STOP $pages; worker twr worker --verbose "$@"
>         twr add slow --group g --method GET --callback $url/healthz
>         until twr stats | grep -q 'started 1'; do sleep 0.02; done
> }
$ slow --grace=1m
1$ twr cancel slow
1$ twr move slow --in 1s
$ twr get slow
...
state         leased
...
token         *
...
$ twr groups
   waiting   running                oldest_due  group
         0         1                     never  g
$ twr groups --json
{"waiting":0,"running":1,"group":"g"}
$ kill $started; await worker finishing
$ twr add later --method GET --callback $url/healthz
$ kill -CONT $pages; wait $started
$ grep 'done ' $folder/worker
*done     slow  *
*done 1, *
1$ twr get slow
$ twr list
*  pending  0/25  later

== A task longer than the grace is given back.
$ slow --grace=300ms; end
$ grep -c 'released slow' $folder/worker
1
$ kill -CONT $pages; twr get slow
...
state         pending
...

== A task of a worker that was killed runs again when its lease has ended, with a higher token.
$ slow --lease=1500ms
$ token() { twr get slow | sed -n 's/^token *//p'; }
$ first=$(token); kill -9 $started; worker twr worker --verbose --lease=1500ms
$ until test "$(token)" -gt "$first" 2>/dev/null; do sleep 0.02; done
$ kill -CONT $pages; await worker 'done     slow  attempt 2/25'
$ end

== A worker with few descriptors runs fewer callbacks.
$ worker sh -c 'ulimit -Sn 20; ulimit -Hn 40; exec twr worker --verbose'
$ seq 64 | sed "s|.*|{\"key\":\"&\",\"method\":\"GET\",\"callback\":\"$url/healthz\"}|" | twr load -
64 added, 0 refused
$ until test "$(grep -c '^done ' $folder/worker)" = 64; do sleep 0.01; done
$ end
1$ grep '^snoozed' $folder/worker

== SIGHUP ends a worker as SIGTERM does, unless nohup makes it ignore that.
$ worker twr worker
$ end HUP
$ grep -c 'the worker has stopped' $folder/worker
1
$ worker sh -c 'trap "" HUP; exec twr worker --verbose'
$ kill -HUP $started
$ twr add a --method GET --callback $url/healthz
$ await worker 'done     a'
1$ grep finishing $folder/worker
$ end

== A worker outlives a restart of Redis.
$ server other --appendonly yes
$ TWR_URL="redis+unix://$folder/other.sock" server=${processes##* }
$ worker twr worker --verbose --lease=1s
$ kill $server; await worker 'Redis is unavailable'
$ server other --appendonly yes
$ twr add a --method GET --callback $url/healthz
$ await worker 'done     a'
$ await worker 'Redis is available again'
$ end

== An address of IP version 6 is shown in brackets, where the machine has one.
$ TWR_URL="redis+unix://$folder/own.sock"; start worker twr worker --listen=[::1]:0
$ wait_for $folder/worker grep -e 'the worker runs' -e "twr: can't listen" $folder/worker
$ grep -c "listens on http://\[::1\]:[0-9]\|can't listen on \[::1\]:0: " $folder/worker
1
