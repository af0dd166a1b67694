/* native_parse: what an adapter program of RMCFG TYPE=NATIVE prints, in our terms.
 *
 *   SC=0 COUNT=2 RESPONSE=text                    {"nodes":[{"id":"n1","state":"Idle","cproc":4},…]}
 *   n1 STATE=Idle;CPROC=4;CMEMORY=4000            {"jobs":[…]}
 *   n2 STATE=Down;CPROC=4;CAT="no power"
 *
 * Pure. A list is taken whole or not at all: one line that is not understood, a name that is there twice, a number beyond
 * its bound or a count that is not kept is an error with a sentence. Attributes that we do not know are passed over. */
#ifndef NUI_LOCAL_RM_NATIVE_PARSE_H
#define NUI_LOCAL_RM_NATIVE_PARSE_H

#include "local/rm/rm.h"
#include "proto/base/arena.h"

enum { NATIVE_ENTRIES_MAX = 100000, NATIVE_PROCS_MAX = 1 << 20, NATIVE_ID_MAX = 64 };

enum native_state { NATIVE_NONE, NATIVE_PENDING, NATIVE_RUNNING, NATIVE_SUSPENDED, NATIVE_ENDED };

struct native_seen {
    struct rm_native native;
    enum native_state state;
    bool removed; /* ended by somebody, not by itself */
    time_us end;
    time_us dispatch; /* no later than that its run was given its nodes; 0: not said */
    int32_t exit_code;
    duration_us cpu_time; /* -1: not said */
};

/* counted: a text must say how many entries follow, since nothing else tells that it was not cut short. Strings and
 * lists are the arena's; nodes in the order of strverscmp. licences: of the node GLOBAL, "" none. */
int native_parse_nodes (const char *text, size_t len, bool counted, struct arena *arena,
                        struct rm_node **out, uint32_t *count_out, const char **licences_out,
                        struct err *err);
int native_parse_jobs (const char *text, size_t len, bool counted, struct arena *arena,
                       struct native_seen **out, uint32_t *count_out, struct err *err);
/* What a call that changes something answered: its RESPONSE, and the value of JOBID ("": none). ERR_CONFLICT: SC < 0,
 * with its words. */
int native_parse_result (const char *text, size_t len, struct arena *arena, const char **job_id_out,
                         struct err *err);
/* A job's name there, as it is said to the adapter: no option, no blank. */
bool native_id_good (const char *id);

#endif
