/* Reservations of ours that Slurm is to keep as well (rm_ops.reserve): what is wished is compared with
 * what a look found, and the difference is made up: by slurmrestd where it can (v0.0.43 makes and changes them,
 * v0.0.40 deletes them), else by scontrol. So one that
 * somebody deleted comes back, and one that was left by a daemon that was killed goes.
 *
 * They are FLEX: a job that names one may begin earlier, end later and use other cores of its nodes, so
 * which cores Slurm chose does not matter to what was planned. IGNORE_JOBS: what runs there now was
 * taken into account by us. A job leaves the reservation as soon as it runs, since Slurm deletes none that
 * a job is in. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm/slurm_i.h"
#include "proto/base/clock.h"
#include "proto/base/hostlist.h"
#include "proto/base/strbuf.h"

/* Slurm counts a job's time from when it started it, a moment after it was decided, and starts none
 * that could reach into a reservation. */
static const duration_us start_slack = 10 * US_PER_S, short_one = 60 * US_PER_S;

struct slurm_resv {
    struct slurm *slurm;
    char name[SLURM_RESV_NAME_MAX];
    /* what is wished */
    bool wished;
    time_us start, end;
    char **host;
    uint32_t *procs;
    uint32_t host_count;
    char user[SLURM_WORD_MAX];
    /* what Slurm has */
    bool there, same;
    char *users; /* ",root,alice," */
    uint64_t seen;
    bool busy;    /* a command is under way */
    bool refused; /* the last command failed: again after the next look */
    bool mark;    /* of one call */
    UT_hash_handle hh;
};

static void hosts_free (struct slurm_resv *r)
{
    for (uint32_t i = 0; i < r->host_count; i++)
        free (r->host[i]);
    free (r->host);
    free (r->procs);
    r->host = NULL;
    r->procs = NULL;
    r->host_count = 0;
}

static void resv_free (struct slurm_resv *r)
{
    HASH_DEL (r->slurm->resvs, r);
    hosts_free (r);
    free (r->users);
    free (r);
}

static struct slurm_resv *resv_get (struct slurm *slurm, const char *name)
{
    struct slurm_resv *r;
    HASH_FIND_STR (slurm->resvs, name, r);
    if (!r) {
        r = calloc (1, sizeof *r);
        assert (r);
        r->slurm = slurm;
        snprintf (r->name, sizeof r->name, "%s", name);
        HASH_ADD_STR (slurm->resvs, name, r);
    }
    return r;
}

static bool user_in (const struct slurm_resv *r, const char *user)
{
    char word[SLURM_WORD_MAX + 2];
    snprintf (word, sizeof word, ",%.60s,", user);
    return r->users && strstr (r->users, word);
}

static void users_set (struct slurm_resv *r, const char *list)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_printf (&b, ",%s,", list);
    strbuf_text (&b);
    free (r->users);
    r->users = strbuf_steal (&b);
}

static void user_out (struct slurm_resv *r, const char *user)
{
    char word[SLURM_WORD_MAX + 2];
    snprintf (word, sizeof word, ",%.60s,", user);
    char *at = strstr (r->users, word);
    if (at)
        memmove (at, at + strlen (word) - 1, strlen (at + strlen (word) - 1) + 1);
}

/* --- what is wished ----------------------------------------------------------------------- */

static bool wish_same (const struct slurm_resv *r, const struct rm_reservation *w)
{
    if (!r->wished || r->start != w->start || r->end != w->end || r->host_count != w->host_count)
        return false;
    for (uint32_t i = 0; i < w->host_count; i++)
        if (strcmp (r->host[i], w->host[i]) != 0 || r->procs[i] != w->host_procs[i])
            return false;
    return true;
}

static void wish_take (struct slurm_resv *r, const struct rm_reservation *w)
{
    if (wish_same (r, w))
        return;
    hosts_free (r);
    if (r->wished)
        r->same = false; /* another one now; else what Slurm has is from before a restart */
    r->wished = true;
    r->refused = false;
    r->start = w->start;
    r->end = w->end;
    snprintf (r->user, sizeof r->user, "%s", w->user ? w->user : "");
    r->host = calloc (w->host_count, sizeof *r->host);
    r->procs = calloc (w->host_count, sizeof *r->procs);
    assert (r->host && r->procs);
    for (uint32_t i = 0; i < w->host_count; i++) {
        r->host[i] = strdup (w->host[i]);
        r->procs[i] = w->host_procs[i];
    }
    r->host_count = w->host_count;
}

/* --- what Slurm has ----------------------------------------------------------------------- */

/* Is that what is wished? Slurm says nothing of who made it. */
static bool found_same (const struct slurm_resv *r, const json_t *o)
{
    const char *nodes, **name;
    int64_t start, end;
    uint32_t count;
    time_us now = clock_now_us ();
    if (slurm_int (o, r->name, "start_time", true, 0, &start, NULL) != 0 ||
        slurm_int (o, r->name, "end_time", true, 0, &end, NULL) != 0 ||
        slurm_text (o, r->name, "node_list", true, &nodes, NULL) != 0 || start < 0 || end < 0 ||
        start > UINT32_MAX || end > UINT32_MAX)
        return false;
    start *= US_PER_S;
    end *= US_PER_S;
    if ((start > now || r->start > now) &&
        (start < r->start - US_PER_S || start > r->start + start_slack + US_PER_S))
        return false;
    if (r->end == TIME_US_MAX && end <= now) /* somebody ended it */
        return false;
    if (r->end != TIME_US_MAX && (end < r->end - 2 * US_PER_S || end > r->end + 2 * US_PER_S))
        return false;
    struct arena *arena = arena_create (0);
    bool same = hostlist_expand (nodes, arena, &name, &count, NULL) == 0 && count == r->host_count;
    for (uint32_t i = 0; same && i < count; i++) {
        bool ours = false;
        for (uint32_t k = 0; k < r->host_count && !ours; k++)
            ours = strcmp (name[i], r->host[k]) == 0;
        same = ours;
    }
    arena_destroy (arena);
    return same;
}

int slurm_resv_on_object (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    const char *name, *users;
    if (strcmp (key, "reservations") != 0)
        return 0;
    if (slurm_text (object, "a reservation", "name", true, &name, err) != 0 ||
        slurm_text (object, name, "users", false, &users, err) != 0)
        return err->code;
    if (strncmp (name, slurm->resv_prefix, strlen (slurm->resv_prefix)) != 0 ||
        strlen (name) >= SLURM_RESV_NAME_MAX)
        return 0; /* not ours */
    struct slurm_resv *r = resv_get (slurm, name);
    r->seen = slurm->resv_look;
    if (r->busy)
        return 0;
    r->there = true;
    users_set (r, users);
    r->same = r->wished && found_same (r, object);
    return 0;
}

void slurm_resv_looked (struct slurm *slurm)
{
    struct slurm_resv *r, *next;
    HASH_ITER (hh, slurm->resvs, r, next) {
        r->refused = false;
        if (r->seen != slurm->resv_look && !r->busy)
            r->there = false;
    }
    slurm_resv_settle (slurm);
}

/* --- what is done ------------------------------------------------------------------------- */

struct resv_errand {
    struct slurm *slurm;
    char name[SLURM_RESV_NAME_MAX];
    enum { RESV_CREATE, RESV_DELETE, RESV_JOIN, RESV_LEAVE } what;
    char user[SLURM_WORD_MAX], key[JOBDIR_KEY_MAX];
};

static void on_resv_done (void *arg, int code, const char *text)
{
    struct resv_errand e = *(struct resv_errand *)arg;
    struct slurm *slurm = e.slurm;
    struct slurm_resv *r;
    char quoted[300];
    (void)text;
    free (arg);
    HASH_FIND_STR (slurm->resvs, e.name, r);
    if (r) {
        r->busy = false;
        r->refused = code != 0 && e.what <= RESV_DELETE;
        if (code == 0 && e.what == RESV_CREATE) {
            r->there = r->same = true;
            users_set (r, e.user);
        } else if (code == 0 && e.what == RESV_DELETE) {
            r->there = false;
        } else if (code == 0 && e.what == RESV_JOIN) {
            struct strbuf b = STRBUF_INIT;
            strbuf_printf (&b, "%s%s", r->users + 1, e.user);
            users_set (r, strbuf_text (&b));
            strbuf_free (&b);
        } else if (code == 0) {
            user_out (r, e.user);
        }
    }
    if (code == 0 && e.what <= RESV_DELETE)
        log_event (slurm->log, LOG_LEVEL_INFO, "slurm",
                   e.what == RESV_CREATE ? "reserved" : "unreserved", "reservation=%s",
                   log_quote (e.name, quoted, sizeof quoted));
    if (e.what == RESV_JOIN) {
        struct slurm_job *job;
        HASH_FIND (hh_id, slurm->by_id, e.key, strlen (e.key), job);
        if (job) {
            job->joining = false;
            job->joined = true; /* or it goes without: Slurm will say */
            slurm_job_settle (job);
        }
    }
    struct slurm_job *waiting, *next; /* until it was free */
    HASH_ITER (hh_id, slurm->by_id, waiting, next)
        if (e.what > RESV_DELETE && waiting->phase == PHASE_MOVE && !waiting->joined)
            slurm_job_settle_soon (waiting);
    slurm_resv_settle (slurm);
}

static struct resv_errand *errand_for (struct slurm_resv *r, int what, const char *user)
{
    struct resv_errand *e = calloc (1, sizeof *e);
    assert (e);
    e->slurm = r->slurm;
    e->what = what;
    memcpy (e->name, r->name, sizeof e->name);
    snprintf (e->user, sizeof e->user, "%s", user);
    r->busy = true;
    return e;
}

static void on_resv_answer (void *arg, const struct slurm_answer *answer)
{
    struct resv_errand *e = arg;
    char quoted[600];
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED)
        slurm_unreachable (e->slurm, answer);
    else if (answer->code != 0)
        log_event (e->slurm->log, LOG_LEVEL_WARN, "slurm", "not_reserved",
                   "reservation=%s error=%s", e->name,
                   log_quote (answer->text, quoted, sizeof quoted));
    on_resv_done (e, answer->code != 0, answer->text);
}

static void errand_ask (struct resv_errand *e, const char *method, const char *path, json_t *body)
{
    struct slurm_request request = {.method = method,
                                    .path = path,
                                    .body = body,
                                    .on_done = on_resv_answer,
                                    .on_drop = free,
                                    .arg = e};
    slurm_rest_send (e->slurm->rest, &request);
}

static void delete_it (struct slurm_resv *r)
{
    char name[SLURM_RESV_NAME_MAX + 32];
    if (slurm_rest_api (r->slurm->rest)->resv_delete) {
        snprintf (name, sizeof name, "reservation/%s", r->name);
        errand_ask (errand_for (r, RESV_DELETE, ""), "DELETE", name, NULL);
        return;
    }
    snprintf (name, sizeof name, "reservationname=%s", r->name);
    const char *args[] = {"scontrol", "delete", name, NULL};
    slurm_command (r->slurm, args, on_resv_done, errand_for (r, RESV_DELETE, ""));
}

struct share {
    const struct slurm_node *node;
    uint32_t procs;
};

/* Slurm takes the numbers of cores in its own order of nodes. */
static int share_order (const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    return x->node->order < y->node->order ? -1 : x->node->order > y->node->order;
}

/* "n1,n2", and cores "2,4" unless all of them are whole; false: Slurm does not have them all. */
static bool nodes_text (const struct slurm_resv *r, struct strbuf *nodes, struct strbuf *cores)
{
    struct share *share = calloc (r->host_count + 1, sizeof *share);
    bool whole = true, known = true;
    assert (share);
    for (uint32_t i = 0; known && i < r->host_count; i++) {
        struct slurm_node *node;
        HASH_FIND_STR (r->slurm->nodes, r->host[i], node);
        known = node != NULL;
        share[i] = (struct share){node, r->procs[i]};
        whole &= known && r->procs[i] >= node->node.procs;
    }
    if (known)
        qsort (share, r->host_count, sizeof *share, share_order);
    for (uint32_t i = 0; known && i < r->host_count; i++) {
        const struct slurm_node *n = share[i].node;
        uint32_t procs = share[i].procs < n->node.procs ? share[i].procs : n->node.procs;
        strbuf_printf (nodes, "%s%s", i ? "," : "", n->node.name);
        strbuf_printf (cores, "%s%u", i ? "," : "", (procs + n->threads - 1) / n->threads);
    }
    if (whole)
        strbuf_clear (cores);
    free (share);
    return known;
}

static json_t *number_set (int64_t v)
{
    return json_pack ("{s:b, s:b, s:I}", "set", 1, "infinite", v < 0, "number",
                      (json_int_t)(v < 0 ? 0 : v));
}

/* "root,alice" as a list. */
static json_t *names_list (const char *users)
{
    json_t *list = json_array ();
    for (const char *p = users; *p; p += strcspn (p, ","), p += *p == ',')
        if (*p != ',')
            json_array_append_new (list, json_stringn (p, strcspn (p, ",")));
    return list;
}

/* When it begins and ends there, in seconds; *end -1: it does not. */
static void times_of (const struct slurm_resv *r, int64_t *start, int64_t *end)
{
    time_us now = clock_now_us (), from = r->start;
    if (from > now && r->end - from > short_one)
        from += start_slack;
    *start = (from < now ? now : from) / US_PER_S;
    *end = r->end == TIME_US_MAX ? -1 : (r->end + US_PER_S - 1) / US_PER_S;
}

/* cores: "2,4" of the nodes, "" whole ones. Several numbers cannot be said to slurmrestd. */
static void create_by_rest (struct slurm_resv *r, const char *users, const char *nodes,
                            const char *cores)
{
    int64_t start, end;
    times_of (r, &start, &end);
    json_t *body = json_pack ("{s:s, s:o, s:o, s:o, s:[s,s]}", "name", r->name, "start_time",
                              number_set (start), "users", names_list (users), "node_list",
                              names_list (nodes), "flags", "IGNORE_JOBS", "FLEX");
    json_object_set_new (body, end < 0 ? "duration" : "end_time", number_set (end));
    if (*cores)
        json_object_set_new (body, "core_count", number_set (strtoll (cores, NULL, 10)));
    errand_ask (errand_for (r, RESV_CREATE, users), "POST", "reservation", body);
}

static void create_by_command (struct slurm_resv *r, const char *users, const char *nodes,
                               const char *cores)
{
    char name[SLURM_RESV_NAME_MAX + 32], from[48], until[48], who[SLURM_WORD_MAX + 16];
    struct strbuf on = STRBUF_INIT, with = STRBUF_INIT;
    int64_t start, end;
    times_of (r, &start, &end);
    snprintf (name, sizeof name, "reservationname=%s", r->name);
    snprintf (from, sizeof from, "StartTime=uts%lld", (long long)start);
    if (end < 0)
        snprintf (until, sizeof until, "Duration=UNLIMITED");
    else
        snprintf (until, sizeof until, "EndTime=uts%lld", (long long)end);
    snprintf (who, sizeof who, "Users=%s", users);
    strbuf_printf (&on, "Nodes=%s", nodes);
    strbuf_printf (&with, "CoreCnt=%s", cores);
    const char *args[] = {"scontrol",
                          "create",
                          "reservation",
                          name,
                          from,
                          until,
                          who,
                          "Flags=IGNORE_JOBS,FLEX",
                          strbuf_text (&on),
                          *cores ? strbuf_text (&with) : NULL,
                          NULL};
    slurm_command (r->slurm, args, on_resv_done, errand_for (r, RESV_CREATE, users));
    strbuf_free (&on);
    strbuf_free (&with);
}

static void create_it (struct slurm_resv *r)
{
    char users[SLURM_WORD_MAX + 16];
    struct strbuf nodes = STRBUF_INIT, cores = STRBUF_INIT;
    snprintf (users, sizeof users, "%s%s%s", r->slurm->user, *r->user ? "," : "", r->user);
    if (nodes_text (r, &nodes, &cores)) {
        bool rest =
            slurm_rest_api (r->slurm->rest)->resv_create && (cores.len == 0 || r->host_count == 1);
        (rest ? create_by_rest : create_by_command) (r, users, strbuf_text (&nodes),
                                                     strbuf_text (&cores));
    }
    strbuf_free (&nodes);
    strbuf_free (&cores);
}

/* A job that is being started inside it still needs it. */
static bool needed (const struct slurm_resv *r)
{
    struct slurm_job *job, *next;
    HASH_ITER (hh_id, r->slurm->by_id, job, next)
        if (job->phase != PHASE_NONE && strcmp (job->reservation, r->name) == 0)
            return true;
    return false;
}

/* Of a part of the cluster: over all of its nodes, for good. */
static struct slurm_resv *part_resv (struct slurm *slurm)
{
    char name[SLURM_RESV_NAME_MAX];
    snprintf (name, sizeof name, "%spart", slurm->resv_prefix);
    return resv_get (slurm, name);
}

static void part_wish (struct slurm *slurm)
{
    struct slurm_resv *r = part_resv (slurm);
    const char **host = calloc (slurm->node_count + 1, sizeof *host);
    uint32_t *procs = calloc (slurm->node_count + 1, sizeof *procs);
    assert (host && procs);
    for (uint32_t i = 0; i < slurm->node_count; i++) {
        host[i] = slurm->node_list[i].name;
        procs[i] = slurm->node_list[i].procs;
    }
    struct rm_reservation wish = {.start = r->wished ? r->start : clock_now_us (),
                                  .end = TIME_US_MAX,
                                  .host_count = slurm->node_count,
                                  .host = host,
                                  .host_procs = procs};
    if (slurm->node_count > 0)
        wish_take (r, &wish);
    free (host);
    free (procs);
}

void slurm_resv_settle (struct slurm *slurm)
{
    struct slurm_resv *r, *next;
    if (!slurm->resv_wished || !slurm->fresh)
        return;
    if (slurm->only)
        part_wish (slurm);
    HASH_ITER (hh, slurm->resvs, r, next) {
        if (r->busy || r->refused)
            continue;
        if (r->there && (!r->wished || !r->same)) {
            if (!needed (r))
                delete_it (r);
        } else if (!r->there && r->wished && r->end > clock_now_us () + US_PER_S) {
            create_it (r);
        } else if (!r->there && !r->wished) {
            resv_free (r);
        }
    }
}

int slurm_reserve (void *self, const struct rm_reservation *list, uint32_t count, struct err *err)
{
    struct slurm *slurm = self;
    struct slurm_resv *r, *next;
    char name[SLURM_RESV_NAME_MAX];
    if (slurm->observe)
        return err_set (err, ERR_CONFLICT, "Slurm is only looked at (mode TEST)");
    if (slurm->only)
        return 0; /* all of its nodes are kept anyway */
    HASH_ITER (hh, slurm->resvs, r, next)
        r->mark = false;
    for (uint32_t i = 0; i < count; i++) {
        snprintf (name, sizeof name, "%s%s", slurm->resv_prefix, list[i].name);
        r = resv_get (slurm, name);
        wish_take (r, &list[i]);
        r->mark = true;
    }
    HASH_ITER (hh, slurm->resvs, r, next)
        r->wished = r->mark;
    slurm->resv_wished = true;
    slurm_resv_settle (slurm);
    return 0;
}

/* --- jobs inside -------------------------------------------------------------------------- */

static bool hosts_touch (const struct slurm_resv *r, const char *hosts)
{
    for (uint32_t i = 0; i < r->host_count; i++) {
        size_t len = strlen (r->host[i]);
        for (const char *p = hosts; (p = strstr (p, r->host[i])); p += len)
            if ((p == hosts || p[-1] == ',') && (p[len] == ',' || p[len] == 0))
                return true;
    }
    return false;
}

/* Its own, else one that lies over its nodes while it could run: whoever chose the nodes knows that it
 * may be there. */
static struct slurm_resv *resv_for (const struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    struct slurm_resv *r, *next, *over = NULL;
    time_us from = job->launch_at ? job->launch_at : clock_now_us ();
    char own[SLURM_RESV_NAME_MAX];
    const char *number = strrchr (job->job_id, '.');
    snprintf (own, sizeof own, "%s%.40s", slurm->resv_prefix, number ? number + 1 : "");
    HASH_ITER (hh, slurm->resvs, r, next) {
        if (!r->there || !r->host_count || !job->hosts)
            continue;
        if (strcmp (r->name, own) == 0)
            return r;
        if (!over && r->start < from + job->walltime + 60 * US_PER_S && r->end > from &&
            hosts_touch (r, job->hosts))
            over = r;
    }
    return over;
}

/* Puts a user in, or out; the errand is taken. */
static void users_change (struct slurm_resv *r, struct resv_errand *e, bool in)
{
    char name[SLURM_RESV_NAME_MAX + 32], users[SLURM_WORD_MAX + 16];
    if (slurm_rest_api (r->slurm->rest)
            ->resv_create) { /* a known name is changed: all who are to be in */
        json_t *list = json_array (), *all = names_list (r->users), *one;
        size_t i;
        json_array_foreach (all, i, one) if (strcmp (json_string_value (one), e->user) != 0)
            json_array_append (list, one);
        if (in)
            json_array_append_new (list, json_string (e->user));
        json_decref (all);
        errand_ask (e, "POST", "reservation",
                    json_pack ("{s:s, s:o}", "name", r->name, "users", list));
        return;
    }
    snprintf (name, sizeof name, "reservationname=%s", r->name);
    snprintf (users, sizeof users, "Users%s=%s", in ? "+" : "-", e->user);
    const char *args[] = {"scontrol", "update", name, users, NULL};
    slurm_command (r->slurm, args, on_resv_done, e);
}

void slurm_resv_leave (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    struct slurm_job *other, *next;
    struct slurm_resv *r = slurm->only && !slurm->observe ? part_resv (slurm) : NULL;
    if (!r || !r->there || r->busy || !job->user || strcmp (job->user, slurm->user) == 0 ||
        !user_in (r, job->user))
        return;
    HASH_ITER (hh_id, slurm->by_id, other, next)
        if (other != job && other->user && strcmp (other->user, job->user) == 0 &&
            (other->phase == PHASE_MOVE || other->phase == PHASE_WATCH))
            return; /* it is being started */
    users_change (r, errand_for (r, RESV_LEAVE, job->user), false);
}

bool slurm_resv_join (struct slurm_job *job)
{
    if (job->joining)
        return false;
    if (job->joined)
        return true;
    *job->reservation = 0;
    struct slurm_resv *r = job->user ? resv_for (job) : NULL;
    if (job->owner->only) {
        r = job->user ? part_resv (job->owner) : NULL;
        if (r && (!r->there || !r->same))
            return false; /* asked again with the next look */
    }
    if (!r || user_in (r, job->user)) {
        snprintf (job->reservation, sizeof job->reservation, "%s", r ? r->name : "");
        return true;
    }
    snprintf (job->reservation, sizeof job->reservation, "%s", r->name);
    if (r->busy)
        return false;
    struct resv_errand *e = errand_for (r, RESV_JOIN, job->user);
    memcpy (e->key, job->key, sizeof e->key);
    job->joining = true;
    users_change (r, e, true);
    return false;
}

void slurm_resv_stop (struct slurm *slurm)
{
    struct slurm_resv *r, *next;
    HASH_ITER (hh, slurm->resvs, r, next)
        resv_free (r);
}
