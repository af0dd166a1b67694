/* What the lines of [nodes] and [jobs] may say. A new attribute is one function and one row. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/hostlist.h"
#include "tests/unit/local/scenario.h"

#include "local/conf/acl.h"

/* --- values --------------------------------------------------------------------------------- */

duration_us scenario_duration (const struct scenario *s, const struct line *line, const char *text)
{
    struct err err = {0};
    duration_us d = 0;

    scenario_must (s, line->number, duration_parse (text, &d, &err), &err);
    return d;
}

time_us scenario_time (const struct scenario *s, const struct line *line, const char *text)
{
    duration_us d = scenario_duration (s, line, *text == '-' ? text + 1 : text);

    if (*text == '-')
        return s->base - d;
    return d > TIME_US_MAX - s->base ? TIME_US_MAX : s->base + d;
}

static int64_t number (const struct scenario *s, const struct line *line, const char *text)
{
    struct err err = {0};
    int64_t n = 0;

    scenario_must (s, line->number, int_parse (text, "the number", INT32_MIN, INT32_MAX, &n, &err),
                   &err);
    return n;
}

static int32_t memory (const struct scenario *s, const struct line *line, const char *text)
{
    struct err err = {0};
    int64_t mb = 0;

    scenario_must (s, line->number, memory_parse (text, &mb, &err), &err);
    return (int32_t)mb;
}

static void features (struct scenario *s, const struct line *line, const char *text,
                      struct features *out)
{
    char *copy = arena_strdup (s->arena, text), *rest = NULL;

    for (char *f = strtok_r (copy, ",", &rest); f; f = strtok_r (NULL, ",", &rest)) {
        uint32_t i = strtab_intern (s->features, f);
        if (i >= FEATURES_MAX)
            scenario_bad (s, line->number, "more than %d features", FEATURES_MAX);
        out->word[i / 64] |= UINT64_C (1) << (i % 64);
    }
}

uint32_t scenario_hosts (struct scenario *s, const struct line *line, const char *text,
                         uint32_t **node_out, uint32_t **tasks_out)
{
    char *copy = arena_strdup (s->arena, text), *rest = NULL;
    uint32_t n = 0, depth = 0;

    for (char *at = copy; *at; at++) { /* "n[1,3]:2,m1" parts at the second comma */
        depth += (*at == '[') - (*at == ']');
        *at = *at == ',' && depth == 0 ? ' ' : *at;
    }
    *node_out = arena_array (s->arena, s->node_count + 1, sizeof **node_out);
    if (tasks_out)
        *tasks_out = arena_array (s->arena, s->node_count + 1, sizeof **tasks_out);
    for (char *part = strtok_r (copy, " ", &rest); part; part = strtok_r (NULL, " ", &rest)) {
        char *colon = strrchr (part, ':');
        const char **name;
        struct err err = {0};
        uint32_t count;
        if (colon && tasks_out)
            *colon++ = '\0';
        scenario_must (s, line->number, hostlist_expand (part, s->arena, &name, &count, &err),
                       &err);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = 0;
            while (at < s->node_count && strcmp (s->node[at].name, name[i]) != 0)
                at++;
            if (at == s->node_count || n == s->node_count)
                scenario_bad (s, line->number, "%s: no such node, or one twice", name[i]);
            if (tasks_out)
                (*tasks_out)[n] = colon && tasks_out ? (uint32_t)number (s, line, colon) : 0;
            (*node_out)[n++] = at;
        }
    }
    return n;
}

/* --- nodes ---------------------------------------------------------------------------------- */

typedef void node_fn (struct scenario *s, const struct line *line, struct scn_node *n,
                      const char *text);

static void node_procs (struct scenario *s, const struct line *line, struct scn_node *n,
                        const char *text)
{
    n->spec.configured.v[RES_PROCS] = (int32_t)number (s, line, text);
    n->procs_said = true;
}

static void node_memory (struct scenario *s, const struct line *line, struct scn_node *n,
                         const char *text)
{
    n->spec.configured.v[RES_MEM_MB] = memory (s, line, text);
}

static void node_swap (struct scenario *s, const struct line *line, struct scn_node *n,
                       const char *text)
{
    n->spec.configured.v[RES_SWAP_MB] = memory (s, line, text);
}

static void node_disk (struct scenario *s, const struct line *line, struct scn_node *n,
                       const char *text)
{
    n->spec.configured.v[RES_DISK_MB] = memory (s, line, text);
}

static void node_features (struct scenario *s, const struct line *line, struct scn_node *n,
                           const char *text)
{
    features (s, line, text, &n->spec.features);
}

static uint32_t partition (struct scenario *s, const char *text)
{
    return strtab_intern (s->names.partition, text) + 1;
}

static void node_partition (struct scenario *s, const struct line *line, struct scn_node *n,
                            const char *text)
{
    (void)line;
    n->spec.partition = partition (s, text);
}

static void node_speed (struct scenario *s, const struct line *line, struct scn_node *n,
                        const char *text)
{
    struct err err = {0};
    int64_t ppm = 0;

    scenario_must (s, line->number, ppm_parse (text, "the speed", &ppm, &err), &err);
    n->spec.speed_ppm = (int32_t)ppm;
    n->speed_said = true;
}

static void node_priority (struct scenario *s, const struct line *line, struct scn_node *n,
                           const char *text)
{
    n->spec.priority = (int32_t)number (s, line, text);
    n->priority_said = true;
}

static void node_state (struct scenario *s, const struct line *line, struct scn_node *n,
                        const char *text)
{
    if (strcasecmp (text, "up") == 0)
        n->state = NODE_UP;
    else if (strcasecmp (text, "drained") == 0)
        n->state = NODE_DRAINED;
    else if (strcasecmp (text, "down") == 0)
        n->state = NODE_DOWN;
    else
        scenario_bad (s, line->number, "state is up, drained or down, not %s", text);
}

static const struct {
    const char *name;
    node_fn *set;
} node_word[] = {
    {"procs", node_procs}, {"memory", node_memory},     {"swap", node_swap},
    {"disk", node_disk},   {"features", node_features}, {"partition", node_partition},
    {"speed", node_speed}, {"priority", node_priority}, {"state", node_state},
};

static void node_set (struct scenario *s, const struct line *line, struct scn_node *n,
                      const char *word)
{
    const char *equals = strchr (word, '=');

    for (size_t i = 0; equals && i < sizeof node_word / sizeof *node_word; i++) {
        if (strlen (node_word[i].name) == (size_t)(equals - word) &&
            strncmp (node_word[i].name, word, (size_t)(equals - word)) == 0) {
            node_word[i].set (s, line, n, equals + 1);
            return;
        }
    }
    scenario_bad (s, line->number, "%s is nothing that a node has", word);
}

void scenario_nodes_read (struct scenario *s)
{
    for (const struct line *line = s->nodes.first; line; line = line->next) {
        const char **name;
        struct err err = {0};
        uint32_t count;
        scenario_must (s, line->number,
                       hostlist_expand (line->word[0], s->arena, &name, &count, &err), &err);
        struct scn_node *more = arena_array (s->arena, s->node_count + count, sizeof *more);
        if (s->node_count)
            memcpy (more, s->node, s->node_count * sizeof *more);
        s->node = more;
        for (uint32_t i = 0; i < count; i++) {
            struct scn_node *n = &more[s->node_count++];
            *n = (struct scn_node){.name = name[i]};
            for (uint32_t w = 1; w < line->count; w++)
                node_set (s, line, n, line->word[w]);
        }
    }
}

/* --- jobs ----------------------------------------------------------------------------------- */

typedef void job_fn (struct scenario *s, const struct line *line, struct scn_job *j,
                     struct req *req, const char *text);

#define CRED_WORD(name, kind)                                                                      \
    static void job_##name (struct scenario *s, const struct line *line, struct scn_job *j,        \
                            struct req *req, const char *text)                                     \
    {                                                                                              \
        (void)line;                                                                                \
        (void)req;                                                                                 \
        j->spec.cred[kind] = strtab_intern (s->names.tab[kind], text);                             \
    }
CRED_WORD (user, CRED_USER)
CRED_WORD (group, CRED_GROUP)
CRED_WORD (account, CRED_ACCOUNT)
CRED_WORD (class, CRED_CLASS)
CRED_WORD (qos, CRED_QOS)

static void job_tasks (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    (void)j;
    req->tasks = (uint32_t)number (s, line, text);
}

static void job_tpn (struct scenario *s, const struct line *line, struct scn_job *j,
                     struct req *req, const char *text)
{
    (void)j;
    req->tasks_per_node = (uint32_t)number (s, line, text);
}

static void job_procs (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    (void)j;
    req->task.v[RES_PROCS] = (int32_t)number (s, line, text);
}

static void job_memory (struct scenario *s, const struct line *line, struct scn_job *j,
                        struct req *req, const char *text)
{
    (void)j;
    req->task.v[RES_MEM_MB] = memory (s, line, text);
}

static void job_swap (struct scenario *s, const struct line *line, struct scn_job *j,
                      struct req *req, const char *text)
{
    (void)j;
    req->task.v[RES_SWAP_MB] = memory (s, line, text);
}

static void job_disk (struct scenario *s, const struct line *line, struct scn_job *j,
                      struct req *req, const char *text)
{
    (void)j;
    req->task.v[RES_DISK_MB] = memory (s, line, text);
}

static void job_features (struct scenario *s, const struct line *line, struct scn_job *j,
                          struct req *req, const char *text)
{
    (void)j;
    features (s, line, text, &req->features);
}

static void job_partition (struct scenario *s, const struct line *line, struct scn_job *j,
                           struct req *req, const char *text)
{
    (void)line;
    (void)j;
    req->partition = partition (s, text);
}

#define TEXT_WORD(name, field)                                                                     \
    static void job_##name (struct scenario *s, const struct line *line, struct scn_job *j,        \
                            struct req *req, const char *text)                                     \
    {                                                                                              \
        (void)line;                                                                                \
        (void)req;                                                                                 \
        j->field = arena_strdup (s->arena, text);                                                  \
    }
TEXT_WORD (licence, licences)
TEXT_WORD (hosts, hosts)
TEXT_WORD (nodeset, nodeset)

static void job_gres (struct scenario *s, const struct line *line, struct scn_job *j,
                      struct req *req, const char *text)
{
    (void)line;
    j->gres[req - j->req] = arena_strdup (s->arena, text);
}

static void job_prefer (struct scenario *s, const struct line *line, struct scn_job *j,
                        struct req *req, const char *text)
{
    (void)j;
    features (s, line, text, &req->prefer);
}

static void job_access (struct scenario *s, const struct line *line, struct scn_job *j,
                        struct req *req, const char *text)
{
    static const char *const words[] = {"SHARED", "SINGLEUSER", "SINGLEJOB", "SINGLETASK"};

    (void)j;
    for (uint8_t i = 0; i < 4; i++) {
        if (strcasecmp (words[i], text) == 0)
            req->access = (uint8_t)(ACCESS_SHARED + i);
    }
    if (req->access == ACCESS_SITE)
        scenario_bad (s, line->number, "%s is no NODEACCESSPOLICY", text);
}

static void job_exclusive (struct scenario *s, const struct line *line, struct scn_job *j,
                           struct req *req, const char *text)
{
    struct err err = {0};

    (void)j;
    scenario_must (s, line->number, bool_parse (text, &req->exclusive, &err), &err);
}

static void job_walltime (struct scenario *s, const struct line *line, struct scn_job *j,
                          struct req *req, const char *text)
{
    (void)req;
    j->spec.walltime_limit = scenario_duration (s, line, text);
}

static void job_run (struct scenario *s, const struct line *line, struct scn_job *j,
                     struct req *req, const char *text)
{
    (void)req;
    j->run = scenario_duration (s, line, text);
}

static void job_at (struct scenario *s, const struct line *line, struct scn_job *j, struct req *req,
                    const char *text)
{
    (void)req;
    j->spec.submit = scenario_time (s, line, text);
}

static void job_notbefore (struct scenario *s, const struct line *line, struct scn_job *j,
                           struct req *req, const char *text)
{
    (void)req;
    j->spec.not_before = scenario_time (s, line, text);
}

static void job_on (struct scenario *s, const struct line *line, struct scn_job *j, struct req *req,
                    const char *text)
{
    (void)s;
    (void)line;
    (void)req;
    j->nodes = text;
}

static void job_since (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    (void)req;
    j->begun = scenario_time (s, line, text);
    if (j->spec.submit > j->begun)
        j->spec.submit = j->begun;
}

static void job_hold (struct scenario *s, const struct line *line, struct scn_job *j,
                      struct req *req, const char *text)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } hold[] = {{"user", HOLD_USER}, {"system", HOLD_SYSTEM}, {"batch", HOLD_BATCH}};
    char *copy = arena_strdup (s->arena, text), *rest = NULL;

    (void)req;
    for (char *h = strtok_r (copy, ",", &rest); h; h = strtok_r (NULL, ",", &rest)) {
        size_t i = 0;
        while (i < sizeof hold / sizeof *hold && strcmp (hold[i].name, h) != 0)
            i++;
        if (i == sizeof hold / sizeof *hold)
            scenario_bad (s, line->number, "%s is no hold", h);
        j->spec.holds |= hold[i].bit;
    }
}

static void job_flags (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } flag[] = {{"preemptor", JOB_PREEMPTOR},
                {"preemptee", JOB_PREEMPTEE},
                {"norestart", JOB_NORESTART},
                {"firm", JOB_FIRM}};
    char *copy = arena_strdup (s->arena, text), *rest = NULL;

    (void)req;
    for (char *f = strtok_r (copy, ",", &rest); f; f = strtok_r (NULL, ",", &rest)) {
        size_t i = 0;
        while (i < sizeof flag / sizeof *flag && strcmp (flag[i].name, f) != 0)
            i++;
        if (i == sizeof flag / sizeof *flag)
            scenario_bad (s, line->number, "%s is no flag of a job", f);
        j->spec.flags |= flag[i].bit;
    }
}

static void job_deadline (struct scenario *s, const struct line *line, struct scn_job *j,
                          struct req *req, const char *text)
{
    (void)req;
    j->spec.deadline = scenario_time (s, line, text);
}

/* array=7:2: of array 7, of which two may run at one time */
static void job_array (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    const char *colon = strchr (text, ':');

    (void)req;
    j->spec.array = strtoull (text, NULL, 10);
    j->spec.array_limit = colon ? (uint32_t)number (s, line, colon + 1) : 0;
}

/* depend=afterok:JOB,after:JOB */
static void job_depend (struct scenario *s, const struct line *line, struct scn_job *j,
                        struct req *req, const char *text)
{
    char *copy = arena_strdup (s->arena, text), *rest = NULL;

    (void)req;
    for (char *one = strtok_r (copy, ",", &rest); one; one = strtok_r (NULL, ",", &rest)) {
        struct scn_depend *d = arena_new (s->arena, struct scn_depend);
        char *colon = strchr (one, ':');
        bool before;
        if (colon)
            *colon = '\0';
        if (!colon || !depend_kind_parse (one, &d->kind, &before) || before)
            scenario_bad (s, line->number, "%s is no dependency", text);
        d->on = colon + 1;
        d->next = j->depends;
        j->depends = d;
    }
}

static void job_badstarts (struct scenario *s, const struct line *line, struct scn_job *j,
                           struct req *req, const char *text)
{
    (void)req;
    j->bad_starts = (uint32_t)number (s, line, text);
}

static void job_fails (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    (void)s;
    (void)line;
    (void)req;
    j->failing = text;
}

static void job_reservation (struct scenario *s, const struct line *line, struct scn_job *j,
                             struct req *req, const char *text)
{
    (void)line;
    (void)req;
    j->spec.reservation = scenario_reservation (s, text);
}

static void job_attrs (struct scenario *s, const struct line *line, struct scn_job *j,
                       struct req *req, const char *text)
{
    struct acl_list list = {0};
    struct err err = {0};

    (void)req;
    scenario_must (s, line->number, acl_add_jobattrs (&list, text, &err), &err);
    for (uint32_t i = 0; i < list.count; i++)
        j->spec.attrs |= (uint32_t)list.entry[i].value;
    acl_list_free (&list);
}

static const struct {
    const char *name;
    job_fn *set;
} job_word[] = {
    {"user", job_user},
    {"group", job_group},
    {"account", job_account},
    {"class", job_class},
    {"qos", job_qos},
    {"tasks", job_tasks},
    {"tpn", job_tpn},
    {"procs", job_procs},
    {"memory", job_memory},
    {"swap", job_swap},
    {"disk", job_disk},
    {"features", job_features},
    {"gres", job_gres},
    {"licence", job_licence},
    {"hosts", job_hosts},
    {"nodeset", job_nodeset},
    {"prefer", job_prefer},
    {"access", job_access},
    {"partition", job_partition},
    {"exclusive", job_exclusive},
    {"walltime", job_walltime},
    {"run", job_run},
    {"at", job_at},
    {"notbefore", job_notbefore},
    {"on", job_on},
    {"since", job_since},
    {"hold", job_hold},
    {"flags", job_flags},
    {"deadline", job_deadline},
    {"array", job_array},
    {"depend", job_depend},
    {"exit", job_fails},
    {"badstarts", job_badstarts},
    {"reservation", job_reservation},
    {"attrs", job_attrs},
};

static void job_set (struct scenario *s, const struct line *line, struct scn_job *j,
                     struct req *req, const char *word)
{
    const char *equals = strchr (word, '=');

    for (size_t i = 0; equals && i < sizeof job_word / sizeof *job_word; i++) {
        if (strlen (job_word[i].name) == (size_t)(equals - word) &&
            strncmp (job_word[i].name, word, (size_t)(equals - word)) == 0) {
            job_word[i].set (s, line, j, req, equals + 1);
            return;
        }
    }
    scenario_bad (s, line->number, "%s is nothing that a job has", word);
}

static struct req req_new (void)
{
    struct req req = {.tasks = 1};

    req.task.v[RES_PROCS] = 1;
    return req;
}

/* As the daemon does with what is submitted. */
static void job_settle (struct scenario *s, struct scn_job *j)
{
    bool denied;
    const struct policy_qos *qos;

    j->spec.cred[CRED_QOS] = policy_qos_resolve (s->policy, j->spec.cred, &denied);
    qos = policy_qos (s->policy, j->spec.cred[CRED_QOS]);
    if (j->spec.reservation.v == 0 && qos->use_reserved)
        j->spec.reservation = scenario_reservation (s, qos->use_reserved);
    if (j->spec.walltime_limit == 0)
        j->spec.walltime_limit = s->policy->default_wall_s * US_PER_S;
    j->spec.req = j->req;
}

static void job_read (struct scenario *s, const struct line *line)
{
    struct scn_job *j = arena_new (s->arena, struct scn_job);

    j->name = line->word[0];
    j->id = ++s->job_count;
    j->spec = (struct job_spec){.id = {j->id}, .submit = s->base, .not_before = TIME_US_NONE};
    for (int k = 0; k < CRED_KINDS; k++)
        j->spec.cred[k] = CRED_NONE;
    j->start = j->end = TIME_US_NONE;
    j->run = TIME_US_MAX;
    j->begun = s->base;
    j->req[0] = req_new ();
    j->spec.req_count = 1;
    for (uint32_t w = 1; w < line->count; w++) {
        if (strcmp (line->word[w], "+") != 0) {
            job_set (s, line, j, &j->req[j->spec.req_count - 1], line->word[w]);
            continue;
        }
        if (j->spec.req_count == REQS_MAX)
            scenario_bad (s, line->number, "more than %d reqs", REQS_MAX);
        j->req[j->spec.req_count++] = req_new ();
    }
    for (struct scn_job *other = s->first_job; other; other = other->next) {
        if (strcmp (other->name, j->name) == 0)
            scenario_bad (s, line->number, "job %s is there twice", j->name);
    }
    job_settle (s, j);
    if (s->last_job)
        s->last_job->next = j;
    else
        s->first_job = j;
    s->last_job = j;
}

void scenario_jobs_read (struct scenario *s)
{
    for (const struct line *line = s->jobs.first; line; line = line->next)
        job_read (s, line);
}

struct scn_job *scenario_job (struct scenario *s, const struct line *line, const char *name)
{
    struct scn_job *j = s->first_job;

    while (j && strcmp (j->name, name) != 0)
        j = j->next;
    if (!j)
        scenario_bad (s, line->number, "there is no job %s", name);
    return j;
}
