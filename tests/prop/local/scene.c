/* scene: draws sites for test_model.c and tells them to the core: the policy as text through the site's own
 * reader, SRCFG through its calendar, administrators' reservations as setres makes them. What the model is
 * given and what the core is given must be one thing; nothing is decided here. */
#include "tests/prop/local/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/policyconf.h"
#include "tests/prop/local/trace.h"

enum { UNIT_S = 600, DAY = 144, WEEK = 7 * DAY, POLL = 5, PATIENCE = 60 * DAY, RSV_BASE = 1000 };
enum { USERS = 3, GROUPS = 2, ACCOUNTS = 2, CLASSES = 2, QOSES = 2 };
static const int cred_count[MODEL_CREDS] = {USERS, GROUPS, ACCOUNTS, CLASSES, QOSES};
static const char *const cred_word[MODEL_CREDS] = {"USER", "GROUP", "ACCOUNT", "CLASS", "QOS"};
static const char *const what_word[MODEL_WHATS] = {"MAXJOB", "MAXPROC", "MAXNODE", "MAXPS",
                                                   "MAXPE",  "MAXMEM",  "MAXWC",   "MINPROC"};

static int64_t pick (struct scene *s, int64_t low, int64_t high)
{
    return low + (int64_t)(trace_random (&s->seed) % (uint64_t)(high - low + 1));
}

time_us scene_time (int64_t units)
{
    return (INT64_C (1000598400) + units * UNIT_S) * US_PER_S; /* 2001-09-16, a Sunday */
}

/* --- reservations ----------------------------------------------------------------------------- */

/* Windows of a day, of a week, or always, as SRCFG makes them. */
static struct model_block standing_draw (struct scene *s)
{
    struct model_block b = {.period = pick (s, 0, 2) ? DAY : WEEK, .depth = (int)pick (s, 1, 3)};

    b.start = pick (s, 0, b.period - 2);
    b.end = pick (s, b.start + 1, b.period);
    if (pick (s, 0, 3) == 0) {
        b.start = 0;
        b.end = INT64_MAX;
        b.period = 0;
        b.depth = 1;
    }
    return b;
}

/* Nodes are kept from `start` on, from whomever it does not admit; some without an end. */
static struct model_block rsv_draw (struct scene *s)
{
    struct model_block b = {.depth = 1, .end = INT64_MAX};

    b.start = pick (s, 0, 3) ? pick (s, 0, 200) : 0;
    if (pick (s, 0, 1))
        b.end = b.start + pick (s, 1, 80);
    return b;
}

/* Those of SRCFG first. On nodes of setres's there is nothing else: it does not go over what is there. */
static void blocks_draw (struct scene *s)
{
    uint32_t left = (1u << s->node_count) - 1;
    int standing = pick (s, 0, 1) ? (int)pick (s, 1, 2) : 0;
    int count = standing ? (int)pick (s, standing, SCENE_BLOCKS) : (int)pick (s, 1, SCENE_BLOCKS);

    for (int i = 0; i < count && left; i++) {
        struct model_block *b = &s->block[s->rule.block_count];
        uint32_t nodes = (uint32_t)pick (s, 1, (1 << s->node_count) - 1);
        *b = i < standing ? standing_draw (s) : rsv_draw (s);
        b->nodes = i < standing ? nodes : left & -left;
        b->admits = pick (s, 0, 1) ? (uint32_t)pick (s, 0, (1 << USERS) - 1) : 0;
        if (i < standing)
            left &= ~nodes;
        else
            left &= left - 1;
        s->standing_count += i < standing;
        s->rule.block_count++;
    }
}

/* --- limits ------------------------------------------------------------------------------------ */

static int64_t most_of (enum model_what what)
{
    static const int64_t most[MODEL_WHATS] = {4, 10, 5, 200, 10000000, 16, 60, 3};

    return most[what];
}

static bool said_already (const struct scene *s, const struct model_limit *l)
{
    for (int i = 0; i < s->rule.limit_count; i++) {
        const struct model_limit *o = &s->limit[i];
        if (o->whose == l->whose && o->id == l->id && o->what == l->what && o->idle == l->idle &&
            o->other_kind == l->other_kind && o->other_id == l->other_id)
            return true;
    }
    return false;
}

/* Of a QoS there is a DEFAULT of its own, number 0. */
static int cred_draw (struct scene *s, int kind)
{
    return kind == MODEL_QOS ? (int)pick (s, 1, QOSES) : (int)pick (s, 0, cred_count[kind] - 1);
}

static void limit_draw (struct scene *s, bool timed)
{
    struct model_limit l = {.id = MODEL_EACH, .other_kind = -1, .other_id = MODEL_EACH};

    l.whose = (int)pick (s, 0, 9);
    l.whose = l.whose > MODEL_OVERRIDE ? MODEL_USER : l.whose;
    do
        l.what = (enum model_what)pick (s, 0, MODEL_WHATS - 1);
    while (!timed && (l.what == MODEL_PS || l.what == MODEL_WC));
    if (l.whose == MODEL_EACH_JOB)
        l.what = (enum model_what[]){MODEL_PROC, MODEL_WC, MODEL_PS}[pick (s, 0, 2)];
    else if (l.what == MODEL_MINPROC && l.whose == MODEL_OVERRIDE)
        l.what = MODEL_JOB;
    else
        l.idle = l.what != MODEL_MINPROC && pick (s, 0, 3) == 0;
    if (l.whose < MODEL_CREDS && pick (s, 0, 3))
        l.id = cred_draw (s, l.whose);
    if (l.whose == MODEL_OVERRIDE)
        l.id = (int)pick (s, 1, QOSES);
    if (l.whose < MODEL_CREDS && pick (s, 0, 3) == 0) {
        l.other_kind = (int)((l.whose + pick (s, 1, MODEL_CREDS - 1)) % MODEL_CREDS);
        if (pick (s, 0, 1))
            l.other_id = cred_draw (s, l.other_kind);
    }
    l.hard = pick (s, 1 + most_of (l.what) / 6, most_of (l.what));
    l.soft = l.idle || l.whose == MODEL_EACH_JOB || l.what == MODEL_MINPROC || pick (s, 0, 1)
                 ? l.hard
                 : pick (s, 1, l.hard);
    if (l.what == MODEL_PE) { /* whole ones are what the file can say */
        l.hard = (l.hard + 999999) / 1000000 * 1000000;
        l.soft = l.idle ? l.hard : (l.soft + 999999) / 1000000 * 1000000;
    }
    if (!said_already (s, &l))
        s->limit[s->rule.limit_count++] = l;
}

/* Often few, so that what each does is seen; sometimes many. */
static void limits_draw (struct scene *s)
{
    bool timed = pick (s, 0, 2) == 0;
    int count = pick (s, 0, 2) ? (int)pick (s, 1, 4) : (int)pick (s, 5, SCENE_LIMITS);

    for (int i = 0; i < count; i++)
        limit_draw (s, timed);
    if (pick (s, 0, 4) == 0)
        s->rule.free_qos = 1u << pick (s, 1, QOSES);
}

/* --- jobs --------------------------------------------------------------------------------------- */

static int room_for (const struct scene *s, const struct model_job *j)
{
    int total = 0;

    for (int n = 0; n < s->node_count; n++) {
        int fit = s->node[n].procs / j->procs;
        if (j->mem && s->node[n].mem / j->mem < fit)
            fit = s->node[n].mem / j->mem;
        total += fit;
    }
    return total;
}

static void job_draw (struct scene *s, struct model_job *j, int64_t at, bool plain, bool lost)
{
    int total;

    j->submit = at;
    j->limit = pick (s, 1, 30);
    j->run = pick (s, 0, 3) ? pick (s, 0, j->limit) : j->limit;
    j->procs = plain ? 1 : (int)pick (s, 1, 2);
    j->mem = plain ? 0 : (int)pick (s, 0, 3);
    total = room_for (s, j);
    if (total == 0) {
        j->procs = 1;
        j->mem = 0;
        total = s->node_count;
    }
    j->tasks = (int)pick (s, 1, total);
    if (lost && pick (s, 0, 7) == 0) /* more than there is */
        j->tasks = total + (int)pick (s, 1, 3);
    for (int k = 0; k < MODEL_CREDS; k++)
        j->cred[k] = (int)pick (s, 0, cred_count[k] - 1);
    j->cred[MODEL_QOS] = (int)pick (s, 0, QOSES);
    if (pick (s, 0, 3) == 0)
        j->cred[MODEL_ACCOUNT] = -1;
}

/* --- the site ----------------------------------------------------------------------------------- */

struct scene *scene_make (uint64_t seed)
{
    struct scene *s = calloc (1, sizeof *s);
    bool plain, lost;
    int64_t at = 0;
    int most;

    assert_non_null (s);
    s->seed = seed;
    plain = pick (s, 0, 2) == 0;
    lost = pick (s, 0, 3) == 0;
    most = plain ? 1 : (int)pick (s, 1, 4);
    s->node_count = (int)pick (s, 1, SCENE_NODES);
    s->job_count = SCENE_JOBS;
    s->rule = (struct model_rule){.block = s->block,
                                  .limit = s->limit,
                                  .poll = POLL,
                                  .patience = PATIENCE,
                                  .late = plain && pick (s, 0, 1),
                                  .backfill = (enum model_backfill)pick (s, 0, 2),
                                  .longest_first = pick (s, 0, 3) == 0};
    s->rule.depth = pick (s, 0, 1) ? 1 : pick (s, 0, 1) ? (int)pick (s, 2, 5) : 1000;
    if (!s->rule.late && pick (s, 0, 2) == 0)
        blocks_draw (s);
    if (pick (s, 0, 1))
        limits_draw (s);
    for (int n = 0; n < s->node_count; n++)
        s->node[n] = (struct model_node){(int)pick (s, 1, most), (int)pick (s, 2, 8)};
    for (int i = 0; i < s->job_count; i++) {
        at += pick (s, 0, 3) ? pick (s, 0, 12) : 0;
        job_draw (s, &s->job[i], at, plain, lost);
    }
    cred_names_init (&s->names);
    return s;
}

void scene_free (struct scene *s)
{
    standing_destroy (s->standing);
    strbuf_free (&s->config);
    cred_names_free (&s->names);
    free (s);
}

/* --- as text ------------------------------------------------------------------------------------ */

static const char *cred_text (char buf[16], int kind, int id)
{
    if (id == MODEL_EACH)
        return "DEFAULT";
    snprintf (buf, 16, "%c%d", "ugacq"[kind], id);
    return buf;
}

static int64_t as_said (enum model_what what, int64_t value)
{
    return what == MODEL_PS || what == MODEL_WC ? value * UNIT_S
           : what == MODEL_PE                   ? value / 1000000
                                                : value;
}

static void limit_say (struct scene *s, const struct model_limit *l)
{
    static const char *const of_job[MODEL_WHATS] = {[MODEL_PROC] = "SYSTEMMAXPROCPERJOB",
                                                    [MODEL_PS] = "SYSTEMMAXPROCSECONDPERJOB",
                                                    [MODEL_WC] = "SYSTEMMAXJOBWALLTIME"};
    long long soft = as_said (l->what, l->soft), hard = as_said (l->what, l->hard);
    const char *what = what_word[l->what];
    char name[16];

    if (l->whose == MODEL_EACH_JOB) {
        strbuf_printf (&s->config, "%s %lld\n", of_job[l->what], hard);
        return;
    }
    if (l->whose == MODEL_SYSTEM)
        strbuf_printf (&s->config, "SYSCFG[all] ");
    else if (l->whose == MODEL_OVERRIDE)
        strbuf_printf (&s->config, "QOSCFG[%s] O", cred_text (name, MODEL_QOS, l->id));
    else
        strbuf_printf (&s->config, "%sCFG[%s] ", cred_word[l->whose],
                       cred_text (name, l->whose, l->id));
    if (l->idle)
        strbuf_printf (&s->config, "MAXI%s", what + strlen ("MAX"));
    else
        strbuf_puts (&s->config, what);
    if (l->other_kind >= 0 && l->other_id == MODEL_EACH)
        strbuf_printf (&s->config, "[%s]", cred_word[l->other_kind]);
    else if (l->other_kind >= 0)
        strbuf_printf (&s->config, "[%s:%s]", cred_word[l->other_kind],
                       cred_text (name, l->other_kind, l->other_id));
    if (l->idle || l->what == MODEL_MINPROC)
        strbuf_printf (&s->config, "=%lld\n", hard);
    else
        strbuf_printf (&s->config, "=%lld,%lld\n", soft, hard);
}

static void moment_say (struct scene *s, const char *word, int64_t units)
{
    long long minutes = (long long)units * 10;

    strbuf_printf (&s->config, " %s=%lld:%02lld:00", word, minutes / 60, minutes % 60);
}

/* A few are SRCFG's, the rest scene_furnish makes. */
static void standing_say (struct scene *s, int i)
{
    const struct model_block *b = &s->block[i];
    const char *comma = "";

    strbuf_printf (&s->config, "SRCFG[s%d] DEPTH=%d PERIOD=%s HOSTLIST=", i, b->depth,
                   b->period == DAY    ? "DAY"
                   : b->period == WEEK ? "WEEK"
                                       : "INFINITY");
    for (int n = 0; n < s->node_count; n++) {
        if (b->nodes >> n & 1) {
            strbuf_printf (&s->config, "%sn%d", comma, n);
            comma = ",";
        }
    }
    if (b->period) {
        moment_say (s, b->period == DAY ? "STARTTIME" : "WSTARTTIME", b->start);
        moment_say (s, b->period == DAY ? "ENDTIME" : "WENDTIME", b->end);
    }
    comma = " USERLIST=";
    for (int u = 0; u < USERS; u++) {
        if (b->admits >> u & 1) {
            strbuf_printf (&s->config, "%su%d", comma, u);
            comma = ",";
        }
    }
    strbuf_puts (&s->config, "\n");
}

struct policy *scene_policy (struct scene *s)
{
    static const char *const how[] = {"NONE", "FIRSTFIT", "BESTFIT"};
    struct policy *policy = NULL;
    struct err err = {0};
    struct conf *conf;

    strbuf_printf (&s->config,
                   "BACKFILLPOLICY %s\nBACKFILLWINDOWORDER %s\nRESERVATIONDEPTH %d\n"
                   "RESERVATIONBINDING %s\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\nDEFERTIME 0\n"
                   "JOBPRIOACCRUALPOLICY ALWAYS\nRMPOLLINTERVAL %d\n",
                   how[s->rule.backfill], s->rule.longest_first ? "LONGESTFIRST" : "WIDESTFIRST",
                   s->rule.depth, s->rule.late ? "LATE" : "EARLY", POLL * UNIT_S);
    for (int q = 1; q <= QOSES; q++) {
        if (s->rule.free_qos >> q & 1)
            strbuf_printf (&s->config, "QOSCFG[q%d] QFLAGS=IGNUSER\n", q);
    }
    for (int i = 0; i < s->rule.limit_count; i++)
        limit_say (s, &s->limit[i]);
    for (int i = 0; i < s->standing_count; i++)
        standing_say (s, i);
    conf = conf_parse (strbuf_text (&s->config), s->config.len, "scene", &err);
    if (conf == NULL || policy_conf_read (conf, &s->names, &policy, &err) != 0 ||
        conf_finish (conf, &err) != 0)
        fail_msg ("%s\n%s", err.text, strbuf_text (&s->config));
    assert_int_equal (conf_note_count (conf), 0);
    conf_destroy (conf);
    return policy;
}

/* --- for the core ------------------------------------------------------------------------------- */

static int rsv_make (struct scene *s, struct cluster *cluster, int i, struct err *err)
{
    const struct model_block *b = &s->block[i];
    uint32_t node = (uint32_t)__builtin_ctz (b->nodes), acl_count = 0;
    struct acl_entry acl[USERS];
    struct req req = {.tasks = (uint32_t)s->node[node].procs};
    struct placement item = {{node}, req.tasks, 0};
    struct allocation on = {1, &item};
    struct rsv_spec rsv = {.id = {RSV_BASE + (uint64_t)i},
                           .kind = RSV_ADMIN,
                           .req_count = 1,
                           .req = &req,
                           .start = scene_time (b->start),
                           .end = b->end == INT64_MAX ? TIME_US_MAX : scene_time (b->end),
                           .acl = acl};

    for (int u = 0; u < USERS; u++) {
        char name[16];
        if (b->admits >> u & 1)
            acl[acl_count++] = (struct acl_entry){
                .type = CRED_USER,
                .affinity = AFFINITY_POSITIVE,
                .value = strtab_intern (s->names.tab[CRED_USER], cred_text (name, MODEL_USER, u))};
    }
    rsv.acl_count = acl_count;
    req.task.v[RES_PROCS] = 1;
    return cluster_rsv_create (cluster, &rsv, &on, 0, err);
}

static const char *node_name (void *self, uint32_t node)
{
    static const char *const name[SCENE_NODES] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6"};

    (void)self;
    return name[node];
}

static void told (void *self, const char *sentence)
{
    fail_msg ("%s\n%s", sentence, strbuf_text (&((struct scene *)self)->config));
}

int scene_furnish (void *self, struct cluster *cluster, time_us now, struct err *err)
{
    struct scene *s = self;
    struct standing_site site = {.self = s, .node_name = node_name, .note = told};
    int rc = 0;

    for (int n = 0; n < s->node_count && rc == 0; n++) {
        struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
        node.configured.v[RES_PROCS] = s->node[n].procs;
        node.configured.v[RES_MEM_MB] = s->node[n].mem;
        rc = cluster_node_add (cluster, &node, now, NULL, err);
    }
    for (int i = s->standing_count; i < s->rule.block_count && rc == 0; i++)
        rc = rsv_make (s, cluster, i, err);
    s->standing = standing_create (&site);
    return rc;
}

/* As the daemon does before each pass: what is over is gone. */
void scene_roll (void *self, struct cluster *cluster, time_us now)
{
    struct scene *s = self;

    for (int i = s->standing_count; i < s->rule.block_count; i++) {
        if (s->block[i].end != INT64_MAX && scene_time (s->block[i].end) <= now)
            (void)cluster_rsv_release (cluster, (struct rsv_id){RSV_BASE + (uint64_t)i}, now, NULL);
    }
    standing_roll (s->standing, cluster, now);
}

void scene_jobs (struct scene *s, struct engine_job *job, struct req *req)
{
    memset (req, 0, (size_t)s->job_count * sizeof *req);
    memset (job, 0, (size_t)s->job_count * sizeof *job);
    for (int i = 0; i < s->job_count; i++) {
        const struct model_job *j = &s->job[i];
        char name[16];
        req[i].tasks = (uint32_t)j->tasks;
        req[i].task.v[RES_PROCS] = j->procs;
        req[i].task.v[RES_MEM_MB] = j->mem;
        job[i].number = (uint64_t)i + 1;
        job[i].submit = scene_time (j->submit);
        job[i].limit = j->limit * UNIT_S * US_PER_S;
        job[i].run = j->run * UNIT_S * US_PER_S;
        job[i].req_count = 1;
        job[i].req = &req[i];
        for (int k = 0; k < MODEL_CREDS; k++)
            job[i].cred[k] = j->cred[k] < 0
                                 ? CRED_NONE
                                 : strtab_intern (s->names.tab[k], cred_text (name, k, j->cred[k]));
        if (j->cred[MODEL_QOS] == 0)
            job[i].cred[CRED_QOS] = CRED_DEFAULT;
    }
}

/* --- for people ---------------------------------------------------------------------------------- */

void scene_show (const struct scene *s, const struct engine_result *result)
{
    print_message ("%.*s", (int)s->config.len, s->config.data);
    for (int n = 0; n < s->node_count; n++)
        print_message ("node %d: %d procs %d mem\n", n, s->node[n].procs, s->node[n].mem);
    for (int i = 0; i < s->rule.block_count; i++) {
        const struct model_block *b = &s->block[i];
        print_message (
            "reserved: nodes %x from %lld to %lld every %lld, %d at once, for users %x\n", b->nodes,
            (long long)b->start, (long long)b->end, (long long)b->period, b->depth, b->admits);
    }
    for (int i = 0; i < s->job_count; i++) {
        const struct model_job *j = &s->job[i];
        long long start = result[i].start == TIME_US_NONE
                              ? -1
                              : (long long)((result[i].start - scene_time (0)) / UNIT_S / US_PER_S);
        print_message ("job %d: submit %lld limit %lld run %lld, %d tasks of %d procs %d mem, "
                       "u%d g%d a%d c%d q%d: model %lld, core %lld%s\n",
                       i + 1, (long long)j->submit, (long long)j->limit, (long long)j->run,
                       j->tasks, j->procs, j->mem, j->cred[0], j->cred[1], j->cred[2], j->cred[3],
                       j->cred[4], (long long)j->start, start, start == j->start ? "" : "   <---");
    }
}
