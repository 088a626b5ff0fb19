# These are the commands of twr, what they print, and their exit statuses.

== A task is added, shown, moved and cancelled.
$ twr add order:7 --in 1h --callback http://shop.example/expire --data '{"a":1}' --header 'X-Shop: 7' --max-attempts 3
order:7 is due 20*Z
$ twr get order:7 --json
{"key":"order:7","state":"pending","due":"20*Z","due_ms":*,"now_ms":*,"attempts":0,"max_attempts":3,"shard":0,"callback":"http://shop.example/expire","method":"POST","headers":["X-Shop: 7"],"body":"{\"a\":1}"}
$ twr move order:7 --at 2070-01-01T00:00:00.5+01:00 --json
{"key":"order:7","due":"2069-12-31T23:00:00.500Z","due_ms":3155756400500}
$ twr get -- order:7
key           order:7
state         pending
due           2069-12-31T23:00:00.500Z
due_ms        3155756400500
now_ms        *
attempts      0
max_attempts  3
shard         0
callback      http://shop.example/expire
method        POST
headers       X-Shop: 7
body          {"a":1}
$ twr move order:7 --at 3155756400.5 --json
*"due_ms":3155756400500}
$ twr cancel order:7
1$ twr get order:7
twr: there is no such task

== A fraction of a time is rounded up.
$ twr add a --handler --at 2070-01-01T00:00:00.0009Z --json
*"due_ms":3155760000001}
$ twr move a --at 2070-01-01T00:00:59.9999Z --json
*"due_ms":3155760060000}
$ twr move a --at 3155760000.0001 --json
*"due_ms":3155760000001}

== A task that no twr can run is warned of.
$ twr add a --in 1h
twr: no --callback: only a worker with a handler can run this task (--handler confirms it)
a is due *
$ twr add a --in 1h --handler
a is due *
$ twr add a --in 1h --callback http://a.example/ --method PUT
a is due *
$ twr get a --json
*"method":"PUT"*

== No text of a task is obeyed by a terminal.
$ key=$(printf 'a\033[1m')
$ twr add "$key" --in 1h --handler --data "$(printf '\tone\n\033[2Jtwo\177\r \303\274')"
$ twr get "$key" | sed "s/$(printf '\303\274')/UE/"
key           a%1B[1m
...
body          	one
%1B[2Jtwo%7F%0D UE

== Lists and stats show what there is.
$ twr workers | wc -l
0
$ twr add 'a b' --in 1h --handler
$ twr add c --in 30m --handler
$ twr list
20*Z  pending  0/25  c
20*Z  pending  0/25  a%20b
$ twr list --json
{"key":"c","state":"pending",*}
{"key":"a b","state":"pending",*}
$ twr stats
tasks 2
scheduled 2
started 0
dead 0
due 0
recurring 0
added 2
paused no
next 20*Z
now 20*Z
$ twr stats --json
{"tasks":2,"scheduled":2,"started":0,"dead":0,"due":0,"recurring":0,"added":2,"paused":false,"next":"20*Z","now":"20*Z"}

== Recurring tasks recur.
2$ twr add a --every 1h --missed some
2$ twr add a --every 1h --cron @daily --handler
2$ twr add a --every 1h --zone UTC --handler
65$ twr add a --cron nonsense --handler
$ twr add a --every 1h --missed skip --handler
$ twr get a --json
*"every_ms":3600000,*"missed":"skip"*
$ twr get a | grep missed
missed        skip
$ twr stats | grep recurring
recurring 1
$ twr cancel a
$ twr get a
$ twr add a --cron '0 3 * * 1-5' --zone Europe/Berlin --at 2100-01-01T00:00:00Z --handler
a is due 2100-01-01T02:00:00.000Z
$ twr get a --json | grep -o '"cron":"0 3 \* \* 1-5","zone":"Europe/Berlin"\|"missed":"one"'
"cron":"0 3 * * 1-5","zone":"Europe/Berlin"
"missed":"one"
$ twr get a | grep -A 1 cron
cron          0 3 * * 1-5
zone          Europe/Berlin
$ twr cancel a --all
1$ twr get a
1$ twr cancel a --all

== Limits are set and shown. Limits that are not given stay.
$ twr limits --running 7 --json
$ twr limits --rate 100/1s --pause
$ twr limits --json
{"weight":0,"running":7,"rate":"100/1s","paused":true,"group":""}
$ twr stats | grep paused
paused yes
$ twr limits --running 0 --resume
$ twr limits | tr ' ' _
____weight___running______rate____paused__group
_________0_________0____100/1s________no__
2$ twr limits --running -1
2$ twr limits --weight 2
twr: *: only groups have a weight
2$ twr limits --pause --resume
2$ twr add a --running 1

== Limits of groups are set and shown.
$ twr limits other --running 3 --rate 15/1m
$ twr limits acme --running 1 --weight 2
$ twr limits acme --rate 5/1500ms --pause
$ twr limits acme --json
{"weight":2,"running":1,"rate":"5/1500ms","paused":true,"group":"acme"}
$ twr limits | sort
         0         0*
         0         3     15/1m        no  other
         2         1  5/1500ms       yes  acme
    weight   running      rate    paused  group
$ twr limits acme --resume --running 0
$ twr limits acme
    weight*
         2         0  5/1500ms        no  acme
$ twr limits a --rate 0
2$ twr limits a --running no
2$ twr limits a --weight 1001
2$ twr limits a --rate ''
2$ twr limits a --rate 5
2$ twr limits a --rate x
2$ twr limits a --rate 5/x
2$ twr limits a --rate 5/999999h
2$ twr limits a --weight 5x
2$ TWR_URL=nothing TWR_PASSWORD=pw twr stats
2$ twr limits a --rate 0/1s
2$ twr limits a --rate 5/0s
2$ twr limits a --rate 99999999999999999999/1s
2$ twr limits a b
65$ twr limits "$(printf 'a\001b')" --pause

== A group is dropped.
$ twr add a --in 1h --group acme --handler
$ twr add b --in 1h --group other --handler
$ twr drop --group acme
1
1$ twr get a
$ twr get b
$ twr drop --group acme --json
{"count":0,"left":0}

== Groups are listed, and no name is obeyed.
$ twr groups | wc -l
0
$ for i in 1 2 3; do twr add $i --in 1h --handler --group '<b>'; done
$ twr add call --in 2h --handler --group "$(printf 'a"\303\251 ')"
$ twr groups
   waiting   running                oldest_due  group
         3         0  20*Z  <b>
         1         0  20*Z  a"%C3%A9%20
$ twr groups --json
{"waiting":3,"running":0,"oldest_due":"20*Z","group":"<b>"}
{"waiting":1,"running":0,"oldest_due":"20*Z","group":"a\"* "}
2$ twr groups a

== Unknown and existing tasks are 1.
1$ twr cancel nobody
1$ twr move nobody --in 1s
1$ twr add nobody --replace
1$ twr retry nobody
twr: there is no such task
twr: the letter of an occurrence has the key KEY#due=TIME (twr list --dead)
1$ twr drop nobody
$ twr add a --new
1$ twr add a --new
$ twr add a --replace
$ twr add a

== The latest time of a task is shown.
$ twr add a --in 1h --latest 2h --handler
$ twr get a | awk '/^due_ms/ { due = $2 } /^latest_due_ms/ { print $2 - due }'
3600000
$ twr get a --json
*"latest_due_ms":*

== A namespace is deleted if it is unused, or by force.
$ twr add a --in 1h --handler
2$ twr drop --everything
*--everything requires --namespace*
1$ twr drop --everything --namespace "$TWR_NAMESPACE"
twr: the namespace has tasks or dead letters (--force)
$ twr drop --everything --namespace another-one
2$ twr drop --all --force
$ twr get a
$ twr drop --everything --namespace "$TWR_NAMESPACE" --force
1$ twr get a

== A dead letter whose key a task has stays.
$ printf '{"key":"%s","state":"dead","due_ms":1,"reason_base64":"c28="}\n' a b c | twr load -
3 added, 0 refused
$ twr list --dead | sort
*  dead     *  a  so
*  dead     *  b  so
*  dead     *  c  so
$ twr add b --in 1h --handler
1$ twr retry --all
twr: b: the key is already in use
2
1$ twr retry --all --json
twr: b: the key is already in use
{"count":0,"left":1}
$ twr stats | head -n 4
tasks 3
scheduled 3
started 0
dead 1
$ twr drop --all
1
$ twr list --dead | wc -l
0

== Data comes from a file or standard input.
$ echo '[1, 2]' >$folder/data
$ twr add a --in=1h --callback http://a.example/ --data @$folder/data
$ twr get a --json
*"body":"[1, 2]\n"}
$ twr add c --in=1h --callback http://a.example/ --data @- <$folder/data
$ twr get c --json
*"body":"[1, 2]\n"}
$ twr add d --in=1h --callback http://a.example/ --data ''
$ twr get d --json
*"headers":[]}
65$ twr add b --data @/no/such/file
# A folder can be opened, but not read.
65$ twr add b --data @/
twr: the data can't be read: Is a directory
1$ twr get b

== Wrong usage is 2, and says which option takes what.
2$ twr fly
2$ twr --json
2$ twr add
2$ twr add ''
2$ twr add a b
2$ twr get ''
2$ twr groups a
2$ twr add a --in 1w
2$ twr add a --in -5
2$ twr add a --at 2031-05-01T12:00:00
2$ twr add a --at 2031-04-31T12:00:00Z
2$ twr add a --at 99999999999
2$ twr add a --method put
2$ twr add a --max-attempts 0
2$ twr add a --lease 1s
2$ twr add a --latest 0
2$ twr add a --latest 40000d
2$ twr add a --latest 1s --every 1m
2$ twr add a --latest 1s --cron @daily
2$ twr move a
2$ twr drop
2$ twr drop --all a
2$ twr worker --concurrency 5000
2$ twr worker --dead-max-count 0
2$ twr worker --listen-host=a
2$ twr groups --nonsense
2$ twr groups --url http://127.0.0.1/
2$ twr groups --namespace 'a b'
2$ twr add a --data
*--data requires a value*
2$ twr groups --json=yes
*--json takes no value*
2$ twr add a --in soon
*--in requires a valid TIME: delay from now: 90, 250ms*
2$ twr worker --batch 5000
*--batch requires a valid N: *up to 1000*
2$ twr worker --lease 2d
*--lease requires a valid TIME: *100ms to 1d*
2$ twr worker --timeout 2d
*--timeout requires a valid TIME: *1ms to 1d*
$ twr --help
...
*TWR_PASSWORD*
...
$ twr --version

== A list of namespaces is for a worker, and names each once.
$ for list in a=3 a,a a,b,a a, ,a , 'a,b c' 'a;b'; do twr worker --namespace "$list" 2>/dev/null; echo $?; done | uniq
2
2$ twr worker --namespace "$(seq -s , 257)"
2$ twr stats --namespace=a,b

== An address that is invalid or taken is refused.
$ for at in 9464 :9464 127.0.0.1 127.0.0.1: 127.0.0.1:x ::1:9464 '[::1]' '[]:1' 127.0.0.1:65536 a:b:1 127.0.0.1:-1 127.0.0.1:000080 '[::1:9464' "$(printf '%0256d' 0):9464"; do
>         twr worker --listen "$at" 2>/dev/null; echo $?
> done | uniq
2
$ start worker twr worker --listen=127.0.0.1:0
$ await worker 'the worker runs'
$ port=$(grep -o "listens on .*[0-9]" "$folder/worker" | sed "s/.*://")
71$ twr worker --listen "127.0.0.1:$port"
*can't listen on 127.0.0.1:*: *
71$ twr worker --listen "[127.0.0.1]:$port"
*can't listen on [127.0.0.1]:*: *
71$ twr worker --listen "no..host:$port"
*can't listen on no..host:*: *
$ end

== Bad data is 65.
65$ twr add a --callback http://a.example/ --header 'Tw-Token: 1'
$ printf '%0262145d' 1 >$folder/data
65$ twr add a --callback http://a.example/ --header 'Content-Type: text/plain' --data @$folder/data
65$ twr add a --callback http://a.example/ --method=HEAD --data 1
65$ twr add a --header 'X: y'
$ for command in 'add --handler' get cancel retry drop 'move --in=1s'; do
>         twr $command "$(printf '%01025d' 1)" 2>&1; echo $?
> done | sort | uniq -c
*6 2
*6 twr: *: the key must have 1 to 1024 bytes
$ twr stats | head -n 1
tasks 0

== More than there may be is refused.
$ many() { count=$1; shift; seq "$count" | sed 's/.*/--header=A: b/' | tr '\n' '\0' | xargs -0 twr add "$@"; }
$ many 64 a --in=1h --callback http://a.example/
$ many 65 b --in=1h --callback http://a.example/ 2>/dev/null || echo refused
refused
2$ twr worker $(seq 1025 | sed 's/.*/--allow=a.example/')
*at most 1024 patterns*

== A Redis that is not there is 69.
69$ twr groups --url redis://127.0.0.1:1 --patience 0
69$ twr add a --url redis://127.0.0.1:1 --patience 0
69$ twr worker --url redis://127.0.0.1:1

== A Redis that may drop tasks is 69, unless that is wanted.
$ server dropping --maxmemory-policy allkeys-lfu
69$ twr worker --url "redis+unix://$folder/dropping.sock"
*maxmemory-policy*
69$ twr add a --url "redis+unix://$folder/dropping.sock"
$ twr add a --url "redis+unix://$folder/dropping.sock" --allow-eviction --handler
$ start worker twr worker --url "redis+unix://$folder/dropping.sock" --allow-eviction
$ await worker 'the worker runs'
$ end

== A URL may name a database.
$ twr add a --in 1h --handler --url "redis+unix://$folder/own.sock?database=3"
$ redis -n 3 dbsize | grep -c '[1-9]'
1
1$ twr get a

== A wrong password is 77, and no password is shown.
$ server guarded --requirepass the-secret
$ guarded="redis+unix://$folder/guarded.sock"
77$ twr groups --url "$guarded"
77$ TWR_PASSWORD=not-the-secret twr groups --url "$guarded" >$folder/said 2>&1
77$ TWR_PASSWORD=not-the-secret twr worker --url "$guarded" >>$folder/said 2>&1
77$ twr groups --url "redis+unix://:the-wrong-secret@$folder/guarded.sock" >>$folder/said 2>&1
2$ twr groups --url redis://:the-wrong-secret@127.0.0.1:nowhere >>$folder/said 2>&1
1$ grep secret $folder/said
$ TWR_PASSWORD=the-secret twr groups --url "$guarded"
$ TWR_PASSWORD=not-the-secret TWR_URL= twr groups --url "redis+unix://:the-secret@$folder/guarded.sock"
$ TWR_URL="redis+unix://:the-secret@$folder/guarded.sock" twr groups

== The process list shows no password.
$ shown() {
>         start shown "$@"; await shown 'the worker runs'; grep -q twr "/proc/$started/cmdline" &&
>                 ! cat "/proc/$started/cmdline" "/proc/$started/environ" "/proc/$started/comm" "$folder/shown" | grep -q the-secret && end
> }
$ secret="redis+unix://:the-secret@$folder/guarded.sock"
$ TWR_URL="$secret" shown twr worker
$ TWR_URL="$guarded" TWR_PASSWORD=the-secret shown twr worker
$ shown twr worker --url "$secret"
$ shown twr worker "--url=$secret"

== A reader that goes away ends a list silently, by the signal.
# The list is larger than a pipe.
$ seq 2000 | sed 's/.*/{"key":"task-&","in":"1h"}/' | twr load -
2000 added, 0 refused
$ exec 3>$folder/status; { twr list --json 2>&3; echo $? >&3; } | head -n 1 >/dev/null; exec 3>&-; cat $folder/status
141

== Output that can't be written is 71. The lines before it are reported.
71$ twr stats >/dev/full
twr: standard output can't be written
65$ echo nonsense | twr load - >/dev/full
...
71$ TWR_NAMESPACE=case-$((cases - 1)) twr list --json >/dev/full
