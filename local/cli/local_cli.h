/* local_cli: what Maui's commands share on the client's side. Includes proto only.
 *
 *   commands.c  the table and its help texts
 *   call.c      options every command has, calls to the site, several jobs at once
 *   queue.c     showq
 *   job.c       checkjob, canceljob
 *   when.c      showbf, showstart
 *   change.c    sethold, releasehold, setspri, runjob, mjobctl
 *   diagnose.c  diagnose, showconfig; diagnose_creds.c, diagnose_more.c and diagnose_standing.c: some of its tables
 *   node.c      checknode, showres, showstate
 *   sched.c     schedctl
 *   submit.c    msub
 *   query.c     mjobctl -q
 *   modify.c    setqos, mnodectl, changeparam
 *   more.c      showhold, setdeadline, mrsvctl
 *
 * What a command prints is made by a pure function (…_text) from the site's answer, so that tests
 * compare whole outputs. */
#ifndef NUI_LOCAL_CLI_LOCAL_CLI_H
#define NUI_LOCAL_CLI_LOCAL_CLI_H

#include "proto/base/arena.h"
#include "proto/base/strbuf.h"
#include "proto/cli/options.h"
#include "proto/cli/request.h"
#include "proto/cli/table.h"
#include "proto/nui/v1/admin.pb-c.h"

enum { SITE_CALL_TIMEOUT_S = 30 };

/* The option that every command has; its values are a struct with `site`. Scripts of Maui's sites write it --host=MACHINE. */
#define SITE_OPTION(args)                                                                          \
    {"site",                                                                                       \
     0,                                                                                            \
     CLI_OPT_STRING,                                                                               \
     "NAME",                                                                                       \
     "another cluster than the one of nui.cfg",                                                    \
     offsetof (args, site)},                                                                       \
    {                                                                                              \
        "host", 0, CLI_OPT_STRING, NULL, NULL, offsetof (args, site)                               \
    }

/* The same for a command of forms, whose calls go to the Admin service of that site. */
#define SITE_SAID                                                                                  \
    {                                                                                              \
        "site", 0, CLI_OPT_STRING, "NAME", "another cluster than the one of nui.cfg",              \
            .take = site_taken                                                                     \
    }
cli_take site_taken;
extern const struct cli_service site_service;

enum { SITE_NAME_CAP = 128 };
/* Where a job of the grid is to be asked for: nui.cfg names several sites and none is said, so that the metascheduler knows.
 * Nothing for other jobs. *site: --site or NULL, then buf. */
int site_of_grid_job (struct cli_context *ctx, const char *job, char buf[SITE_NAME_CAP],
                      const char **site, struct err *err);
/* A unary call to the site's Admin service. site: --site or NULL. */
int site_admin (struct cli_context *ctx, const char *site, const char *method, const void *request,
                bool idempotent, void *reply_out, struct err *err);

/* A moment as people write it, by the site's schedule: in a simulation "14:30" and "+2:00:00" count
 * from its time. Who may not ask for that counts from the wall clock. */
int site_time (struct cli_context *ctx, const char *site, const char *text, time_us *out,
               struct err *err);

/* Exit code of a command over several jobs: the first that is not CLI_OK. */
int worse (int so_far, int now);

/* --- texts -------------------------------------------------------------------------------- */

/* "(…)" pieces that several commands print. buf holds QUANTITY_TEXT_MAX. */
char *span_text (duration_us d, char *buf); /* duration in Maui's habit */
char *moment_text (time_us t, char *buf);   /* "Sun Sep  9 03:59:00", "-" for 0 */
const char *or_none (const char *text);     /* "[NONE]" for "" */
/* What a job asks of its nodes stands among its features: of "opsys:Linux" what follows "opsys:", else "[NONE]"; and
 * those that are plain, as "[a][b]" or "[NONE]". */
const char *feature_of (char *const *list, size_t count, const char *prefix);
void features_plain (char *const *list, size_t count, struct strbuf *out);
/* Class i of a node with its initiators, free and in all; its processors where they are not counted, as in Maui. */
struct node_class {
    char name[80];
    long long free, all;
};
struct node_class node_class (const Nui__Local__V1__NodeInfo *node, size_t i);
/* microseconds, 0: null */
void cell_moment (struct table *table, int64_t t_us);
void cell_text (struct table *table, const char *text); /* "" is null */

/* --- queue.c ------------------------------------------------------------------------------ */

/* The queue as it came, by section; everything in the arena. */
struct queue {
    struct arena *arena;
    Nui__Local__V1__QueueTotals totals;
    Nui__Local__V1__QueueJob *row;
    uint32_t count, cap;
    uint32_t hidden;
};

enum queue_view { QUEUE_ALL, QUEUE_RUNNING, QUEUE_WAITING, QUEUE_STUCK };

void queue_add (struct queue *queue, const Nui__Local__V1__QueueChunk *chunk); /* copies */
void queue_sort (struct queue *queue); /* active ones by the end of their limit */
/* verbose: with account, class and QoS behind each line. */
void queue_text (const struct queue *queue, enum queue_view view, bool verbose, bool noheader,
                 struct strbuf *out);
struct table *queue_table (const struct queue *queue); /* for JSON and CSV */
/* showq -c: jobs that have ended (ended.c); the exit code. user: NULL: all that the caller may see. */
int ended_show (struct cli_context *ctx, const char *site, const char *user,
                const struct cli_period *period);
/* All of it that was asked for and that the caller may see. */
int queue_fetch (struct cli_context *ctx, const char *site,
                 const Nui__Local__V1__QueueRequest *request, struct queue *out, struct err *err);
extern const struct cli_command showq_command;
/* A partition as Maui's columns have it: "DEF". */
const char *partition_short (const char *partition, char out[4]);

/* --- job.c -------------------------------------------------------------------------------- */

int checkjob_fetch (struct cli_context *ctx, const char *site, char *job, bool verbose,
                    Nui__Local__V1__JobDetail **out, struct err *err);
int checkjob_print (struct cli_context *ctx, const Nui__Local__V1__JobDetail *detail);
extern const struct cli_command checkjob_command;
int cancel_all (struct cli_context *ctx, const char *command, const char *site, char **job,
                int count);
extern const struct cli_command canceljob_command;

/* --- when.c ------------------------------------------------------------------------------- */

/* Why each node gives no more: nodes, and the reservations on them with their nodes. */
struct nodes;
struct reservations;
void showbf_text (const Nui__Local__V1__WindowsReply *reply, bool noheader, struct strbuf *out);
extern const struct cli_command showbf_command;
void showstart_text (const Nui__Local__V1__StartTimeReply *reply, const char *name,
                     struct strbuf *out);
extern const struct cli_command showstart_command;

/* --- node.c ------------------------------------------------------------------------------- */

struct nodes {
    struct arena *arena;
    int64_t now_us;
    Nui__Local__V1__NodeInfo **item; /* each owned */
    uint32_t count, cap;
};
int nodes_fetch (struct cli_context *ctx, const char *site, const char *node, struct nodes *out,
                 struct err *err);
void nodes_free (struct nodes *nodes);
struct table *nodes_table (const struct nodes *nodes);

struct reservations {
    struct arena *arena;
    int64_t now_us;
    Nui__Local__V1__Reservation **item; /* each owned */
    uint32_t count, cap, hidden;
};
int reservations_ask (struct cli_context *ctx, const char *site,
                      const Nui__Local__V1__ReservationsRequest *request, struct reservations *out,
                      struct err *err);
int reservations_fetch (struct cli_context *ctx, const char *site, const char *name,
                        const char *node, bool nodes, struct reservations *out, struct err *err);
void reservations_free (struct reservations *reservations);
/* One row a reservation; by_node: one for each of its nodes. */
struct table *reservations_table (const struct reservations *reservations, bool by_node);

struct showres_look {
    bool nodes;    /* by node */
    bool relative; /* moments as spans from now */
    bool verbose;  /* with access list, flags, owner of each */
    bool summary;  /* sums alone */
    bool noheader;
};
void showres_text (const struct reservations *reservations, struct showres_look look,
                   struct strbuf *out);
void showstate_text (const struct queue *active, const struct nodes *nodes, struct strbuf *out);
extern const struct cli_command checknode_command;
extern const struct cli_command showres_command;
extern const struct cli_command showstate_command;

/* --- change.c ----------------------------------------------------------------------------- */

extern const struct cli_command sethold_command;
extern const struct cli_command releasehold_command;
extern const struct cli_command setspri_command;
extern const struct cli_command runjob_command;
extern const struct cli_command mjobctl_command;

/* --- query.c ------------------------------------------------------------------------------ */

/* Attributes of jobs, one row each. attribute: state, hostlist …; others are wrong usage. */
int query_all (struct cli_context *ctx, const char *site, const char *attribute, char **job,
               int count);

/* --- modify.c ----------------------------------------------------------------------------- */

int modify_all (struct cli_context *ctx, const char *command, const char *site,
                const char *attribute, const char *value, char **job, int count,
                const char *sentence);
/* "qos=hi" into its halves; false: it is not of that form. value points into text. */
bool modify_split (const char *text, char attribute[32], const char **value);
extern const struct cli_command setqos_command;
extern const struct cli_command mnodectl_command;
extern const struct cli_command changeparam_command;
/* Lists the parameters in force, or one by its name; all: also those of this machine. */
int config_list (struct cli_context *ctx, const char *command, const char *site, bool all,
                 const char *only);
/* "RESERVATIONDEPTH[0] 2", as a line of the configuration. */
int param_change (struct cli_context *ctx, const char *command, const char *site, const char *line);

/* --- more.c ------------------------------------------------------------------------------- */

extern const struct cli_command showhold_command;
extern const struct cli_command setdeadline_command;
extern const struct cli_command mrsvctl_command;
/* Makes the reservation that was described, and prints what came of it, for setres and mrsvctl -c. */
int setres_send (struct cli_context *ctx, const char *command, const struct cli_said *said);
int release_one (struct cli_context *ctx, const char *command, const char *site, char *name,
                 struct table *t);
extern const struct table_column release_columns[2];
/* A moment by the site's schedule, into the field called like the option. */
cli_take take_moment;

/* --- submit.c ----------------------------------------------------------------------------- */

extern const struct cli_command msub_command;
/* --- resv.c ------------------------------------------------------------------------------- */

void diagnose_reservations_text (const struct reservations *list, bool noheader,
                                 struct strbuf *out);
/* name: one of them, or NULL. */
int diagnose_reservations (struct cli_context *ctx, const char *site, const char *name);
extern const struct cli_command setres_command;
extern const struct cli_command releaseres_command;

/* --- diagnose_standing.c ------------------------------------------------------------------ */

int diagnose_standing (struct cli_context *ctx, const char *site, const char *name);

/* --- diagnose_creds.c --------------------------------------------------------------------- */

/* kind: "user", "group", "account", "class", "qos"; name: one of them, or NULL. */
void credentials_text (const Nui__Local__V1__CredentialsReply *reply, const char *kind,
                       bool noheader, struct strbuf *out);
int diagnose_creds (struct cli_context *ctx, const char *site, const char *kind, const char *name);

/* --- sched.c ------------------------------------------------------------------------------ */

extern const struct cli_command schedctl_command;

/* --- diagnose.c --------------------------------------------------------------------------- */

struct priority_chunk {
    Nui__Local__V1__PrioritiesChunk *message; /* owned */
    struct priority_chunk *next;
};
struct priorities { /* at least one chunk: the first tells the parts */
    struct arena *arena;
    struct priority_chunk *first, *last;
};
void priorities_text (const struct priorities *priorities, bool noheader, struct strbuf *out);
/* held: for each node, how many reservations stand on it */
void nodes_text (const struct nodes *nodes, const uint32_t *held, bool noheader,
                 struct strbuf *out);
extern const struct cli_command showconfig_command;
extern const struct cli_command diagnose_command;
extern const struct cli_command mdiag_command;

#endif
