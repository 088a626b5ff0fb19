/* SPDX-License-Identifier: MIT */
/*
 * The map of a cluster is wrong: invalid, too large, or missing, or the nodes that could send it
 * are down. A node is silent, or missing, and holds up no call or task of another. The nodes are
 * false servers.
 *
 * The keys b, f and j are in slot 4558, c and g in slot 495, d and h in slot 12684, a and e in slot
 * 8621. The layout is in slot 7224.
 */
#include "support/talk.h"

#include "redis/client/client.h"

#define ON_ALL "[0 16383 "
#define HERE "['127.0.0.1' $away]]"

/* The valid part is used, to the last slot that there is. */
TEST(talk, ranges_that_make_no_sense_are_passed_over)
{
	SAY("cluster; on CLUSTER [" ON_ALL "[]]" ON_ALL "1]" ON_ALL "['127.0.0.1']]" ON_ALL
	    "['127.0.0.1' '$away']]" ON_ALL "['127.0.0.1' 0]]" ON_ALL "['127.0.0.1' -1]]" ON_ALL
	    "['127.0.0.1' 65536]]" ON_ALL "['%0*d' 1]] [0 16383] [-1 10 " HERE "[20 10 " HERE
	    "[12684 99999 ['127.0.0.1' $b]]];"
	    "open; cancel a; cancel b; cancel c; asked = 3; cancel d; at b; asked = 1",
	    HOST_SIZE, 0);
}

/* A node that does not know its host leaves it out, and the address that was asked is used. */
TALK(unknown_host_is_the_one_that_was_asked,
     "cluster; on CLUSTER [[12684 12684 [{'?'|''|nil} $b]]]; open; cancel d; at b; asked = 1")

TALK(map_of_more_slots_than_there_are_is_read_to_that_number,
     "cluster away 0-99 a 0-16383 away 0-16383; open; cancel a; cancel b; cancel c; cancel d")

/* Slots of further nodes keep their owners. */
TEST(talk, nodes_beyond_the_number_that_is_kept_are_not_asked)
{
	char *map;
	size_t size;
	FILE *out = open_memstream(&map, &size);

	fputc('[', out);
	for (int i = 1; i <= NODES_MAX; i++)
		fprintf(out, "[0 0 ['127.0.0.1' %d]]", i);
	fprintf(out, "[8621 8621 ['127.0.0.1' %d]]]", NODES_MAX + 1);
	fclose(out);
	SAY("cluster");
	false_server_set(talk_server(), "CLUSTER", map, FALSE_ALWAYS);
	free(map);
	CONTINUE("open; cancel a; on script -MOVED 7 127.0.0.1:%d; cancel a = UNREACHABLE MOVED",
		 NODES_MAX + 2);
}

/* A request that followed the map's request on a broken connection is sent again. */
TALK(missing_map_is_asked_for_again,
     "cluster; once CLUSTER close; open;"
     "on CLUSTER {[]|+OK|-ERR not now}; open; cancel d; asked = 1;"
     "on CLUSTER [[12684 12684 ['127.0.0.1' $b]]]; cancel a; cancel d; at b; asked = 1")

/* The server left while idle, so a new connection asks for the map. */
TALK(restarted_server_sends_the_map,
     "cluster; open; down; up; cluster a 0-9999 b 10000-16383; cancel a; cancel d; at b; asked = 1")

/* Another node refuses, not the call's own: some other node may still send the map. The patience is
 * long enough that its node is not tried again at once. */
TALK(refusal_of_a_node_that_could_send_the_map_ends_no_call,
     "cluster a 0-12683 away 12684-12684; open password p; patience 400ms;"
     "cancel d = UNREACHABLE; patience none; cancel break = OUTCOME_UNKNOWN;"
     "on AUTH -WRONGPASS invalid username-password pair; cancel d = UNREACHABLE;"
     /* A change at that node is refused. */
     "cancel a = REFUSED")

/* The first of the four shards' commands of a pass is refused by a replica. The replies to the
 * others come after several passes have ended, for there are two nodes. */
TALK(replies_that_a_former_master_owes_are_waited_for,
     "cluster a 1-16383 away 0-0; open; once script late :0; once script -READONLY a replica;"
     "drop; asked = 6")

TALK(former_master_is_connected_to_again,
     "open; once script -READONLY a replica; on INFO info maxmemory_policy:allkeys-lru;"
     "cancel a = UNFIT allkeys-lru")

TALK(cluster_has_no_databases, "cluster a 0-16383; open at /1 = INVALID database")

/* ---- Silent nodes ---- */

#define PATIENT "reply 60s connect 60s patience 60s"

/* The silent node is the first that would be asked for the map. Two calls wait for it, and others,
 * two at a time, do not: the one that leads hands over to the other, and not to a call that waits.
 * Nor do those whose slot has moved. */
TEST(talk, silent_node_holds_up_no_call_for_another)
{
	SAY("cluster a 0-5000 b 5001-12000 c 12001-16383; open " PATIENT "; cancel b; cancel a;"
	    "cancel d; once #f hold; begin f; await held 1; begin j");
	for (int i = 0; i < 20; i++)
		CONTINUE("begin a; begin d; ended; ended");
	CONTINUE("at b; on #e -MOVED 8621 127.0.0.1:$c; cancel e; at a; release; ended; ended");
}

/* The system accepts connections for the silent node. */
TEST(talk, connecting_a_silent_node_holds_up_no_call_for_another)
{
	SAY("cluster a 0-8000 b 8001-9000 c 9001-16383; at c; on CLIENT hold; at a; open " PATIENT
	    "; begin d; at c; await held 1; begin h");
	for (int i = 0; i < 20; i++)
		CONTINUE("begin a; begin b; ended; ended");
	CONTINUE("on CLIENT +OK; release; ended; ended");
}

/* The map is to be read again, and the node would have to be connected for that. */
TALK(node_that_was_silent_is_not_asked_for_the_map,
     "cluster a 0-8000 b 8001-16383; open reply 1s patience none; cancel b; cancel d;"
     "on CLIENT hold; once script silence; cancel b = OUTCOME_UNKNOWN; cancel d; took 0ms-1s")

/* The first server has no task. */
#define WORK_BESIDE "cluster b 0-8000 a 8001-16383; at b; open " PATIENT "; "

/* A lease is extended, and later tasks run, while a claim waits for the silent node. The worker
 * stops without it. */
TALK(silent_node_holds_up_no_task_of_another,
     WORK_BESIDE "at a; on claim hold; at b; 4x extend 'o'; give k;"
		 "work lease 300ms poll 10ms until extend; at a; await held 1; at b; await done 1;"
		 "give k; await done 2; lost = 0; stop; took 0ms-30s")

/* The worker knows one node, and its first claims connect the other. */
TALK(connecting_a_silent_node_holds_up_no_task_of_another,
     WORK_BESIDE "at a; on CLIENT hold; at b; give k; work poll 10ms; await done 1;"
		 "at a; await held 1; at b; give k; await done 2; lost = 0;"
		 "at a; on CLIENT +OK; release; await asked 1")

/* The other node's replies do not count: there is one loss, and one return. */
TALK(missing_node_is_reported_once, WORK_BESIDE
     "work poll 10ms; at a; await asked 1; on script -LOADING not yet;"
     "await lost 1; at b; give k; await done 1; give k; await done 2; give k; await done 3;"
     "lost = 1; found = 0; trouble = UNREACHABLE; at a; on script usual; await found 1;"
     "trouble = OK; lost = 1")

TALK_FILE
