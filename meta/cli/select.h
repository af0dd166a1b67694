/* select: which jobs are meant, by their ids, by what they are like, or by both.
 *
 * A filter is compared here, with pages of all that the metascheduler lists, so that no question costs it more than a page.
 * What is selected are ids to be named in calls: several of one array in one of them, those that wait before those in
 * queues, and these before those that run. */
#ifndef NUI_META_CLI_SELECT_H
#define NUI_META_CLI_SELECT_H

#include "meta/cli/grid.h"

/* NULL, or 0: whatever it is. */
struct job_filter {
    struct cli_period period;
    const char *state, *site, *account; /* "A,B" */
    const char *user;                   /* "A,B", each may be a pattern */
    const char *name;                   /* a pattern: run-* */
};

bool job_filter_wants (const struct job_filter *filter, const Nui__Meta__V1__JobStatus *s);
/* CLI_OK, or it names a state that there is not. */
int job_filter_check (const char *command, const struct job_filter *filter);
const char *job_user_name (const char *uri);

/* ---- pages of jobs, from the newest on, each oldest first */

enum { JOB_PAGES_MAX = 400 };

struct job_pages {
    Nui__Meta__V1__JobsReply *page[JOB_PAGES_MAX];
    uint32_t count;
    uint64_t found; /* that the filter wants */
    bool more;      /* there may be others that were not looked at */
};

/* Until so many are found that the filter wants. Freed also after a failure. */
int job_pages_read (struct cli_context *ctx, Nui__Meta__V1__JobsRequest *request,
                    const struct job_filter *filter, uint64_t wanted, struct job_pages *pages,
                    struct err *err);
void job_pages_free (struct job_pages *pages);

/* ---- what a command is to do something with */

struct select_args {
    bool all, yes;
    struct job_filter filter;
};

/* Rows of a table of a select_args. */
#define SELECT_FILTERS                                                                             \
    {"all",                                                                                        \
     'a',                                                                                          \
     CLI_OPT_FLAG,                                                                                 \
     NULL,                                                                                         \
     "all of yours; with --user, all of theirs",                                                   \
     offsetof (struct select_args, all)},                                                          \
        {"name",                                                                                   \
         'N',                                                                                      \
         CLI_OPT_STRING,                                                                           \
         "PATTERN",                                                                                \
         "only called so: run-*",                                                                  \
         offsetof (struct select_args, filter.name)},                                              \
        {"state",                                                                                  \
         's',                                                                                      \
         CLI_OPT_STRING,                                                                           \
         "A,B",                                                                                    \
         "only in these states: Pending, Queued, ...",                                             \
         offsetof (struct select_args, filter.state)},                                             \
        {"site",                                                                                   \
         0,                                                                                        \
         CLI_OPT_STRING,                                                                           \
         "A,B",                                                                                    \
         "only with a component at one of these",                                                  \
         offsetof (struct select_args, filter.site)},                                              \
        {"account",                                                                                \
         'A',                                                                                      \
         CLI_OPT_STRING,                                                                           \
         "A,B",                                                                                    \
         "only paid by one of these",                                                              \
         offsetof (struct select_args, filter.account)},                                           \
    {                                                                                              \
        "user", 'u', CLI_OPT_STRING, "A,B", "of these users, and not yours (operators); '*': all", \
            offsetof (struct select_args, filter.user)                                             \
    }
#define SELECT_YES                                                                                 \
    {                                                                                              \
        "yes", 'y', CLI_OPT_FLAG, NULL, "do not ask before more than ten",                         \
            offsetof (struct select_args, yes)                                                     \
    }

enum { SELECT_ASK_ABOVE = 10 };

struct selection {
    char **id; /* "grid.42", "grid.42[3-7,9]" */
    uint32_t count;
    uint32_t jobs; /* that these are, as far as they were looked at */
    bool filtered; /* else they are what was said, and `jobs` is 0 */
};

enum select_order {
    SELECT_WHOLE, /* by number: of an array one id */
    SELECT_WAITING_FIRST,
    SELECT_EACH, /* by number, each of an array by itself, also of those that were named by range */
};

/* What the operands and the filter name; of a filter those that have not ended, or that are in the states asked for. In the
 * arena. CLI_OK, or what the command returns; at least one is named. */
int select_jobs (struct cli_context *ctx, const char *command, const struct select_args *args,
                 const struct cli_operands *operands, enum select_order order, bool ended,
                 struct arena *arena, struct selection *out);
/* Asks at a terminal before a filter means more than ten; elsewhere that takes --yes. `what`: "cancel". CLI_OK: go on. */
int select_confirm (const char *command, const char *what, const struct select_args *args,
                    const struct selection *selection);

#endif
