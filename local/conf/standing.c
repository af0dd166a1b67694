/* standing: computes which instances of each SRCFG the calendar has now, and makes, refills or
 * ends the reservations for them. It reads no clock: the caller gives the moment. An instance
 * that runs keeps its nodes over a reload or a restart as long as its text stays the same. */
#include "local/conf/standing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "local/conf/hosts.h"
#include "local/core/access.h"
#include "local/core/reserve.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

struct instance {
    char name[64];
    uint64_t hash; /* of the policy's text when it was made */
    uint64_t rsv;
    time_us start, end;
    uint32_t wanted;
    time_us used;  /* when somebody was last seen in it */
    bool in_use;   /* IDLETIME: when we last looked */
    bool given_up; /* IDLETIME: not made again for this time */
};

struct standing {
    struct standing_site site;
    struct instance *list;
    uint32_t count, cap;
    const struct policy *policy; /* of the last roll */
    uint64_t version;            /* of the cluster after it */
    time_us next;                /* when something ends or begins */
    uint32_t serial;
    char *before; /* what standing_regain was given, until the first roll; NULL: nothing */
    bool changed; /* since standing_lines */
};

struct standing *standing_create (const struct standing_site *site)
{
    struct standing *st = mem_zero (1, sizeof *st);
    st->site = *site;
    return st;
}

void standing_destroy (struct standing *st)
{
    if (!st)
        return;
    free (st->list);
    free (st->before);
    free (st);
}

/* --- the calendar ----------------------------------------------------------------------------- */

/* Seconds after the midnight that begins a local day, as the wall clock counts them. */
static time_us local_moment (const struct tm *day, int days, int64_t seconds)
{
    struct tm t = {.tm_year = day->tm_year,
                   .tm_mon = day->tm_mon,
                   .tm_mday = day->tm_mday + days + (int)(seconds / 86400),
                   .tm_hour = (int)(seconds % 86400 / 3600),
                   .tm_min = (int)(seconds % 3600 / 60),
                   .tm_sec = (int)(seconds % 60),
                   .tm_isdst = -1};
    return (time_us)mktime (&t) * US_PER_S;
}

static bool on_that_day (const struct policy_standing *s, const struct tm *day, int days)
{
    int weekday = ((day->tm_wday + days) % 7 + 7) % 7;
    return s->days >> weekday & 1;
}

bool standing_window (const struct policy_standing *s, time_us now, uint32_t k, time_us *start,
                      time_us *end)
{
    time_t seconds = (time_t)(now / US_PER_S);
    struct tm today;
    if (s->period == STANDING_INFINITY) {
        *start = now;
        *end = TIME_US_MAX;
        return k == 0;
    }
    localtime_r (&seconds, &today);
    int step = s->period == STANDING_WEEK ? 7 : 1;
    int first = s->period == STANDING_WEEK ? -today.tm_wday - 7 : -2;
    for (int d = first; d < 366 + 14; d += step) {
        if (s->period == STANDING_DAY && !on_that_day (s, &today, d))
            continue;
        *start = local_moment (&today, d, s->period == STANDING_DAY ? s->start_s : s->week_start_s);
        *end = local_moment (&today, d, s->period == STANDING_DAY ? s->end_s : s->week_end_s);
        if (*end > now && k-- == 0)
            return true;
    }
    return false;
}

/* --- instances --------------------------------------------------------------------------------- */

static const struct policy_standing *policy_of (const struct policy *p, const struct instance *i)
{
    for (uint32_t k = 0; k < p->standing_count; k++)
        if (strcmp (p->standing[k].name, i->name) == 0 && p->standing[k].hash == i->hash)
            return &p->standing[k];
    return NULL;
}

static struct instance *instance_at (struct standing *st, const struct policy_standing *s,
                                     time_us start)
{
    for (uint32_t i = 0; i < st->count; i++)
        if (strcmp (st->list[i].name, s->name) == 0 && st->list[i].hash == s->hash &&
            (s->period == STANDING_INFINITY || st->list[i].start == start))
            return &st->list[i];
    return NULL;
}

static void note (struct standing *st, const struct policy_standing *s, const char *what)
{
    char text[256];
    text_printf (text, sizeof text, "SRCFG[%s]: %.180s", s->name, what);
    if (st->site.note)
        st->site.note (st->site.self, text);
}

/* --- what is asked for -------------------------------------------------------------------------- */

static bool features_of (struct standing *st, const struct policy_standing *s, struct req *req)
{
    for (const char *p = s->features ? s->features : ""; *p;) {
        size_t n = strcspn (p, ",:[] \t");
        char name[64];
        snprintf (name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), p);
        uint32_t f = n ? st->site.feature (st->site.self, name) : 0;
        if (n > 0 && f >= FEATURES_MAX)
            return false;
        if (n > 0)
            req->features.word[f / 64] |= UINT64_C (1) << (f % 64);
        p += n + (p[n] != 0);
    }
    return true;
}

/* *wanted: of tasks, or nodes. False, with a note: nothing can be found for it. */
static bool ask_of (struct standing *st, const struct cluster *c, const struct policy_standing *s,
                    struct arena *arena, struct rsv_ask *ask, uint32_t *wanted)
{
    uint32_t nodes = cluster_node_count (c), named = 0;
    struct err err = {0};
    bool *host = arena_array (arena, nodes + 1, sizeof *host);
    const char **name = arena_array (arena, nodes + 1, sizeof *name);
    *ask = (struct rsv_ask){.flags = s->flags, .whole = s->whole, .busy = s->busy};
    ask->req.task = s->task;
    ask->req.tasks_per_node = s->tasks_per_node;
    if (!features_of (st, s, &ask->req)) {
        note (st, s, "no node has its NODEFEATURES");
        return false;
    }
    if (s->partition && strcasecmp (s->partition, "ALL") != 0) {
        ask->req.partition = st->site.partition (st->site.self, s->partition);
        if (ask->req.partition == PARTITION_ANY) {
            note (st, s, "there is no such PARTITION");
            return false;
        }
    }
    for (uint32_t n = 0; n < nodes; n++)
        name[n] = st->site.node_name (st->site.self, n);
    if (s->hosts && hosts_match (s->hosts, name, nodes, host, &err) != 0) {
        note (st, s, err.text);
        return false;
    }
    for (uint32_t n = 0; n < nodes; n++)
        named += host[n];
    ask->host = s->hosts ? host : NULL;
    ask->req.tasks = s->tasks ? s->tasks : named;
    /* As many as its hosts: these very ones, whatever is there. Fewer, or none named: it floats. */
    if (s->hosts && s->whole && ask->req.tasks >= named) {
        ask->req.tasks = named;
        ask->flags |= RSV_FORCED;
    }
    *wanted = ask->req.tasks;
    if (s->hosts && !s->whole && s->tasks == 0) {
        ask->all = true;
        ask->flags |= RSV_FORCED;
    }
    return true;
}

static uint32_t have_of (const struct cluster *c, const struct rsv_view *view, bool whole)
{
    uint32_t have = 0;
    for (uint32_t i = 0; i < view->allocation.count; i++) {
        struct node_view node;
        if (cluster_node_get (c, view->allocation.item[i].node, &node, NULL) == 0 &&
            node.state == NODE_UP)
            have += whole ? 1 : view->allocation.item[i].tasks;
    }
    return have;
}

/* --- over a restart ------------------------------------------------------------------------------- */

/* "dev 3f2a… 1000000800000000 n01:4,n02:4": name, hash, beginning (0: always there), nodes with tasks. */
static void key_of (const struct instance *i, bool always, char *key, size_t cap)
{
    snprintf (key, cap, "%s %llx %lld ", i->name, (unsigned long long)i->hash,
              always ? 0LL : (long long)i->start);
}

static bool always_there (const struct instance *i)
{
    return i->end == TIME_US_MAX;
}

char *standing_lines (struct standing *st, const struct cluster *c)
{
    struct strbuf out = STRBUF_INIT;
    char key[128];
    if (!st->changed)
        return NULL;
    st->changed = false;
    for (uint32_t k = 0; k < st->count; k++) {
        struct rsv_view view;
        if (cluster_rsv_get (c, (struct rsv_id){st->list[k].rsv}, &view, NULL) != 0)
            continue;
        key_of (&st->list[k], always_there (&st->list[k]), key, sizeof key);
        strbuf_puts (&out, key);
        for (uint32_t i = 0; i < view.allocation.count; i++)
            strbuf_printf (&out, "%s%s:%u", i ? "," : "",
                           st->site.node_name (st->site.self, view.allocation.item[i].node.v),
                           view.allocation.item[i].tasks);
        strbuf_putc (&out, '\n');
    }
    strbuf_text (&out);
    return strbuf_steal (&out);
}

void standing_regain (struct standing *st, const char *lines)
{
    free (st->before);
    st->before = strdup (lines);
    assert (st->before);
}

/* Tasks of the node in "n01:4,n02:4"; 0: it is not there. */
static uint32_t tasks_of (const char *list, const char *node)
{
    size_t len = strlen (node);
    for (; *list && *list != '\n'; list += strcspn (list, ",\n"), list += *list == ',')
        if (strncmp (list, node, len) == 0 && list[len] == ':')
            return (uint32_t)strtoul (list + len + 1, NULL, 10);
    return 0;
}

/* The nodes it had before the restart, in the arena. */
static struct allocation nodes_before (const struct standing *st, const struct cluster *c,
                                       const struct instance *i, struct arena *arena)
{
    struct allocation a = {0};
    char key[128];
    const char *line = st->before;
    key_of (i, always_there (i), key, sizeof key);
    while (line && strncmp (line, key, strlen (key)) != 0) {
        line = strchr (line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return a;
    a.item = arena_array (arena, cluster_node_count (c) + 1, sizeof *a.item);
    for (uint32_t n = 0; n < cluster_node_count (c); n++) {
        uint32_t tasks = tasks_of (line + strlen (key), st->site.node_name (st->site.self, n));
        if (tasks)
            a.item[a.count++] = (struct placement){{n}, tasks & TASKS_MAX, 0};
    }
    return a;
}

/* --- making and refilling ------------------------------------------------------------------------- */

/* Does it come again, whatever happens, on the same nodes? */
static struct rsv_again again_of (const struct policy_standing *s, uint32_t flags, time_us start,
                                  time_us end)
{
    struct rsv_again again = {.series = s->hash ? s->hash : 1, .days = 1, .from = start, .to = end};
    time_t noon = (time_t)(start / US_PER_S - s->start_s + 43200);
    struct tm day;
    if (s->period == STANDING_INFINITY || s->idle > 0 || !(flags & RSV_FORCED) ||
        (flags & (RSV_TIMEFLEX | RSV_SINGLEUSE)))
        return (struct rsv_again){0};
    localtime_r (&noon, &day);
    for (int d = 1; s->period == STANDING_DAY && d < 7; d++)
        again.days |= (uint32_t)on_that_day (s, &day, d) << d;
    return again;
}

static void make (struct standing *st, struct cluster *c, const struct policy_standing *s,
                  uint32_t which, time_us start, time_us end, time_us now)
{
    struct arena *arena = arena_create (0);
    struct err err = {0};
    struct rsv_ask ask;
    struct rsv_place place;
    uint32_t wanted;
    if (!ask_of (st, c, s, arena, &ask, &wanted)) {
        arena_destroy (arena);
        return;
    }
    ask.start = start > now ? start : now;
    ask.end = end;
    struct req req = ask.req;
    struct instance one = {.hash = s->hash,
                           .start = start,
                           .end = end,
                           .wanted = wanted,
                           .used = ask.start,
                           .rsv = RSV_STANDING_BASE | (uint64_t)which << 40 |
                                  (++st->serial & ((UINT64_C (1) << 40) - 1))};
    snprintf (one.name, sizeof one.name, "%s", s->name);
    ask.keep = nodes_before (st, c, &one, arena);
    int rc = cluster_rsv_place (c, &ask, now, arena, &place, &err);
    if (rc == 0) {
        req.tasks = place.task_sum;
        struct rsv_spec spec = {.id = {one.rsv},
                                .kind = RSV_ADMIN,
                                .start = place.start,
                                .end = place.end,
                                .req_count = 1,
                                .req = &req,
                                .flags = s->flags,
                                .acl_count = s->acl_count,
                                .acl = s->acl,
                                .owned = s->owned,
                                .owner = s->owner,
                                .again = again_of (s, ask.flags, start, end),
                                .placed = true};
        if (st->site.named)
            spec.group = st->site.named (st->site.self, s->name).v;
        rc = cluster_rsv_create (c, &spec, &place.allocation, now, &err);
    }
    if (rc != 0) {
        note (st, s, err.text);
    } else {
        st->list = mem_grow (st->list, &st->cap, st->count + 1, sizeof *st->list);
        st->list[st->count++] = one;
        st->changed = true;
    }
    arena_destroy (arena);
}

static void refill (struct standing *st, struct cluster *c, const struct policy_standing *s,
                    struct instance *i, const struct rsv_view *view, uint32_t have, time_us now)
{
    struct arena *arena = arena_create (0);
    struct rsv_ask ask;
    struct rsv_place place;
    if (ask_of (st, c, s, arena, &ask, &i->wanted)) {
        ask.start = i->start > now ? i->start : now;
        ask.end = i->end;
        ask.flags &= ~(uint32_t)RSV_TIMEFLEX;
        ask.keep = view->allocation;
        if (cluster_rsv_place (c, &ask, now, arena, &place, NULL) == 0 && place.tasks > have &&
            cluster_rsv_move (c, (struct rsv_id){i->rsv}, place.task_sum, &place.allocation, now,
                              NULL) == 0)
            st->changed = true;
    }
    arena_destroy (arena);
}

/* IDLETIME: has somebody been there? */
static bool in_use (const struct cluster *c, const struct rsv_view *view)
{
    uint32_t count = cluster_job_count (c, JOB_RUNNING) + cluster_job_count (c, JOB_STARTING);
    struct job_id *id = mem_zero (count + 1, sizeof *id);
    bool used = false;
    uint32_t n = cluster_job_list (c, JOB_RUNNING, id, count);
    n += cluster_job_list (c, JOB_STARTING, id + n, count - n);
    for (uint32_t i = 0; !used && i < n; i++) {
        struct job_view job;
        uint8_t affinity;
        if (cluster_job_get (c, id[i], &job, NULL) != 0)
            continue;
        struct who who = {.walltime = job.spec->walltime_limit,
                          .procs = job.procs,
                          .attrs = job.spec->attrs,
                          .named = job.spec->reservation};
        memcpy (who.cred, job.spec->cred, sizeof who.cred);
        for (uint32_t a = 0; a < job.allocation.count && !used; a++)
            for (uint32_t k = 0; k < view->allocation.count && !used; k++)
                used = view->allocation.item[k].node.v == job.allocation.item[a].node.v &&
                       access_admits (view->spec, &who, &affinity);
    }
    free (id);
    return used;
}

static void instances_keep (struct standing *st, struct cluster *c, time_us now)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < st->count; k++) {
        struct instance *i = &st->list[k];
        const struct policy_standing *s = policy_of (cluster_policy (c), i);
        struct rsv_view view;
        bool there = cluster_rsv_get (c, (struct rsv_id){i->rsv}, &view, NULL) == 0;
        if (!s || i->end <= now) {
            if (there)
                (void)cluster_rsv_release (c, (struct rsv_id){i->rsv}, now, NULL);
            continue;
        }
        if (there && s->idle > 0 && i->start <= now) {
            bool was = i->in_use; /* until now: each start and end of a job leads here */
            i->in_use = in_use (c, &view);
            if (was || i->in_use)
                i->used = now;
            if (now - i->used >= s->idle) {
                (void)cluster_rsv_release (c, (struct rsv_id){i->rsv}, now, NULL);
                i->given_up = true;
                there = false;
            }
        }
        if (there && !i->given_up) {
            uint32_t have = have_of (c, &view, s->whole);
            if (have < i->wanted)
                refill (st, c, s, i, &view, have, now);
        }
        st->list[kept++] = *i;
    }
    st->changed = st->changed || kept != st->count;
    st->count = kept;
}

/* Higher PRIORITY first, then as they stand in the file. */
static void instances_make (struct standing *st, struct cluster *c, time_us now)
{
    const struct policy *p = cluster_policy (c);
    uint32_t *order = mem_zero (p->standing_count + 1, sizeof *order);
    for (uint32_t i = 0; i < p->standing_count; i++) {
        uint32_t at = i;
        for (; at > 0 && p->standing[order[at - 1]].priority < p->standing[i].priority; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (uint32_t i = 0; i < p->standing_count; i++) {
        const struct policy_standing *s = &p->standing[order[i]];
        time_us start, end;
        for (uint32_t k = 0; k < s->depth && standing_window (s, now, k, &start, &end); k++)
            if (!instance_at (st, s, start))
                make (st, c, s, order[i], start, end, now);
    }
    free (order);
}

static void next_find (struct standing *st, const struct policy *p, time_us now)
{
    st->next = TIME_US_MAX;
    for (uint32_t i = 0; i < st->count; i++) {
        const struct instance *one = &st->list[i];
        if (one->start > now && one->start < st->next)
            st->next = one->start;
        if (one->end > now && one->end < st->next)
            st->next = one->end;
        const struct policy_standing *s = policy_of (p, one);
        if (s && s->idle > 0 && one->start <= now && !one->given_up && !one->in_use &&
            one->used + s->idle < st->next)
            st->next = one->used + s->idle;
    }
}

void standing_roll (struct standing *st, struct cluster *c, time_us now)
{
    const struct policy *p = cluster_policy (c);
    if (p->standing_count == 0 && st->count == 0)
        return;
    if (p == st->policy && cluster_version (c) == st->version && now < st->next)
        return;
    instances_keep (st, c, now);
    instances_make (st, c, now);
    free (st->before);
    st->before = NULL;
    next_find (st, p, now);
    st->policy = p;
    st->version = cluster_version (c);
}

/* --- views ---------------------------------------------------------------------------------------- */

bool standing_get (const struct standing *st, const struct cluster *c, uint64_t rsv,
                   struct standing_view *out)
{
    struct rsv_view view;
    for (uint32_t k = 0; k < st->count; k++) {
        const struct instance *i = &st->list[k];
        if (i->rsv != rsv || i->given_up)
            continue;
        const struct policy_standing *s = policy_of (cluster_policy (c), i);
        if (!s || cluster_rsv_get (c, (struct rsv_id){rsv}, &view, NULL) != 0)
            return false;
        *out = (struct standing_view){
            .policy = s, .wanted = i->wanted, .have = have_of (c, &view, s->whole), .rsv = {rsv}};
        for (uint32_t j = 0; j < st->count; j++)
            out->index += strcmp (st->list[j].name, i->name) == 0 && st->list[j].start < i->start;
        return true;
    }
    return false;
}
