/* jobspec_i: what jobspec's files share. Memory is the spec's arena. */
#ifndef NUI_CLI_JOBSPEC_I_H
#define NUI_CLI_JOBSPEC_I_H

#include "proto/cli/jobspec.h"

enum { REQS_MORE = 63 };

struct text_list {
    const char **item;
    size_t count;
    size_t cap;
};

/* What an amount is for: a task unless it is said otherwise. */
enum amount_per { PER_TASK, PER_PROC, PER_NODE, PER_JOB };

/* What a component, or the defaults of all, was told; NULL and -1 mean "not told". */
struct part {
    const char *name;
    int64_t tasks, nodes, tpn, procs_per_task, procs_max, mem_mb, swap_mb, disk_mb;
    enum amount_per mem_per, disk_per, gres_per;
    int64_t walltime_us;
    bool offset_set;
    int64_t offset_us;
    struct text_list features, liked, sites, env, gres, licences, partitions, stage_in, stage_out,
        inputs;
    struct part *req[REQS_MORE]; /* further reqs, each with what a req may have */
    uint32_t req_count;
    const char *qos, *class, *output, *error, *nodeset, *hosts, *exclude, *node_access, *trl,
        *reservation, *directory, *signal;
    const char *script_path;
};

struct jobspec {
    struct arena *arena;
    time_us now;
    const char *account, *name, *array;
    time_us after, start_by, deadline;
    duration_us valid;
    const char *depend, *flags, *prefer, *quote; /* as given */
    const char *interpreter; /* runs the script, whatever its first line says; NULL: as it says */
    const char *wrapped;     /* the script that a command was made into; NULL: it is a file */
    bool held, walltime_optional, env_all;
    bool mail_perhaps;     /* a directive has asked for it: a job is not refused for want of mail */
    credit_micro cost_max; /* -1: not said; 0: none is wanted */
    int64_t retries, retry_delay_us;
    const char *retry_on, *on_site_loss, *on_failure, *notify, *mail, *mail_to;
    struct part defaults;
    struct part component[JOBSPEC_COMPONENTS_MAX];
    uint32_t component_count;
    bool components_closed; /* an earlier source gave the list: later ones don't add to it */
    struct text_list args;
    struct inputs *inputs; /* what travels with the job; filled by jobspec_build */
    char source; /* of what is set now: the command line, then 1 JSON, then 2 directives */
};

/* One of which nothing is said yet. */
struct part jobspec_part_unset (const char *name);
/* ERR_LIMIT past JOBSPEC_LIST_MAX; text is not copied. */
int jobspec_list_add (struct jobspec *spec, struct text_list *list, const char *text,
                      struct err *err);
/* One value of a component, or of the defaults. ERR_NOT_FOUND: a component has no such key. */
int jobspec_part_set (struct jobspec *spec, struct part *part, const char *key, const char *value,
                      struct err *err);
/* A component of that name. */
struct part *jobspec_component_add (struct jobspec *spec, const char *name, struct err *err);
/* "NAME=value", or "NAME" for the caller's own; a name that is there already stays as it is. */
int jobspec_env_set (struct jobspec *spec, struct part *part, const char *value, struct err *err);
/* A whole file with a NUL behind it. ERR_LIMIT: larger than bytes_max. */
int jobspec_file_read (struct jobspec *spec, const char *path, size_t bytes_max, char **data_out,
                       size_t *len_out, struct err *err);

#endif
