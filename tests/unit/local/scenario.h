/* scenario: one page of the policy book, as it is run. See README.md for what a page may say.
 *
 *   scenario.c         main; the page's sections
 *   scenario_words.c   what its lines may say: nodes and jobs
 *   scenario_place.c   nodes and wishes by the configuration's own names
 *   scenario_run.c     the clock: arrivals, ends and events between passes of the core
 *   scenario_events.c  what may happen beside that
 *   scenario_check.c   what the page expects, against what came about
 *
 * A page is read with the daemon's own parser of maui.cfg and run on the core itself. */
#ifndef NUI_TESTS_UNIT_LOCAL_SCENARIO_H
#define NUI_TESTS_UNIT_LOCAL_SCENARIO_H

#include "local/conf/place.h"
#include "local/conf/policyconf.h"
#include "local/conf/standing.h"
#include "local/core/cluster.h"
#include "proto/job/depend.h"
#include "local/core/plan.h"
#include "proto/base/strbuf.h"

enum { WORDS_MAX = 64 };

/* One line of a section, cut at blanks; "…" keeps together. */
struct line {
    uint32_t number;
    uint32_t count;
    char *word[WORDS_MAX];
    struct line *next;
};

struct lines {
    struct line *first, *last;
};

struct scn_node {
    const char *name;
    struct node_spec spec;
    enum node_state state;
    bool procs_said, speed_said, priority_said;
    struct node_id id;
};

struct scn_job {
    const char *name;
    uint64_t id;
    struct job_spec spec;
    struct req req[REQS_MAX];
    struct licence licence[LICENCES_MAX];
    const char *gres[REQS_MAX], *licences, *hosts, *nodeset; /* read when the nodes are there */
    duration_us run;   /* how long it would run; TIME_US_MAX: until its limit */
    const char *nodes; /* runs at the beginning, here; NULL: it arrives */
    time_us begun;     /* and since then */
    bool arrived, gone, named;
    bool running;
    bool cancelled;
    time_us start, end; /* TIME_US_NONE */
    enum plan_phase phase;
    uint32_t preempted; /* times */
    bool suspended, timed_out;
    uint32_t deferrals, start_failures;
    uint32_t bad_starts; /* so many of its launches fail */
    duration_us done;    /* of its run time, before it was suspended */
    const char *failing; /* runs with exit code other than 0: not NULL */
    struct scn_depend {
        enum depend_kind kind;
        const char *on;
        struct scn_depend *next;
    } * depends;
    struct allocation last; /* where it ran last */
    struct scn_job *next;
};

struct scenario {
    const char *path;
    struct arena *arena;
    struct cred_names names;
    struct strtab *reservations; /* names that jobs ask for or SRCFG has */
    struct standing *standing;
    struct strtab *features;
    struct nodeconf nodeconf; /* NODECFG of [config] */
    struct place place;
    struct strbuf config;
    uint32_t config_line; /* where it begins in the file */
    struct conf *conf;
    struct policy *policy;
    struct lines nodes, jobs, events, expect;
    struct scn_node *node;
    uint32_t node_count;
    struct scn_job *first_job, *last_job;
    uint64_t job_count;
    struct cluster *cluster;
    struct arena *pass_arena;
    struct plan plan; /* the last one */
    time_us base;     /* the page's moment 0 */
    time_us now;
    uint32_t wrong;
    bool again; /* another pass at this moment */
};

/* Ends the program: the page itself cannot be read. */
void scenario_bad (const struct scenario *s, uint32_t line, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4), noreturn));
/* A core's or parser's no that the page did not ask for. */
void scenario_must (const struct scenario *s, uint32_t line, int rc, const struct err *err);

/* --- scenario_place.c --------------------------------------------------------------------- */

/* The cluster's nodes: NODECFG, and what [nodes] says of each. */
void scenario_place_nodes (struct scenario *s);
/* What the job's texts mean on them. */
void scenario_place_job (struct scenario *s, struct scn_job *j);

/* --- scenario_words.c --------------------------------------------------------------------- */

/* After the policy was read. */
void scenario_nodes_read (struct scenario *s);
void scenario_jobs_read (struct scenario *s);
struct scn_job *scenario_job (struct scenario *s, const struct line *line, const char *name);
/* "0", "10:00" … after the page's beginning. */
time_us scenario_time (const struct scenario *s, const struct line *line, const char *text);
duration_us scenario_duration (const struct scenario *s, const struct line *line, const char *text);
/* "n[01-04]" to node numbers; *tasks (may be NULL) gets ":4" of each name, 0 where not said. */
uint32_t scenario_hosts (struct scenario *s, const struct line *line, const char *text,
                         uint32_t **node_out, uint32_t **tasks_out);

/* --- scenario_run.c ----------------------------------------------------------------------- */

void scenario_run (struct scenario *s);
/* The number by which jobs ask for a reservation of this name. */
struct rsv_id scenario_reservation (void *scenario, const char *name);
void scenario_job_end (struct scenario *s, struct scn_job *job);
/* Its start just now came to nothing. */
void scenario_job_start_failed (struct scenario *s, struct scn_job *job);

/* --- scenario_events.c -------------------------------------------------------------------- */

/* "10:00 VERB …" */
void scenario_event (struct scenario *s, const struct line *line);

/* --- scenario_check.c --------------------------------------------------------------------- */

void scenario_check (struct scenario *s, const struct line *line);
/* Every job of the page has to stand in what it expects. */
void scenario_check_named (struct scenario *s);

#endif
