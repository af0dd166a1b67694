/* Administrators' reservations: records, names, placing and refilling. A record is durable before it is acknowledged; the
 * core holds the copy that jobs run in. What they cost is resv_charge.c's. */
#include "local/svc/resv/resv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/conf/hosts.h"
#include "local/conf/taskspec.h"
#include "local/core/access.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

/* --- names ---------------------------------------------------------------------------------- */

struct site_rsv *resv_find (struct svc *svc, const char *name)
{
    struct site_rsv *rsv, *next;
    HASH_ITER (hh, svc->rsvs, rsv, next)
        if (strcmp (rsv->rec.name, name) == 0)
            return rsv;
    return NULL;
}

/* "grid.42" of grid.42[3]: jobs come in by it, whichever it is. */
static void group_whole (const struct store_rsv *rec, char out[STORE_NAME_MAX])
{
    text_printf (out, STORE_NAME_MAX, "%.*s", (int)strcspn (rec->grid, "["), rec->grid);
}

struct site_rsv *resv_of_group (struct svc *svc, const char *group)
{
    struct site_rsv *rsv, *next;
    char whole[STORE_NAME_MAX];
    HASH_ITER (hh, svc->rsvs, rsv, next) {
        group_whole (&rsv->rec, whole);
        if (*group && (strcmp (rsv->rec.grid, group) == 0 || strcmp (whole, group) == 0))
            return rsv;
    }
    return NULL;
}

struct site_rsv *resv_of_core (struct svc *svc, uint64_t core)
{
    struct site_rsv *rsv;
    uint64_t number = core & ~RSV_ADMIN_BASE;
    if (!(core & RSV_ADMIN_BASE) || (core & RSV_STANDING_BASE))
        return NULL;
    HASH_FIND (hh, svc->rsvs, &number, sizeof number, rsv);
    return rsv;
}

static const char *standing_name (struct svc *svc, uint64_t core)
{
    struct standing_view view;
    if (!standing_get (svc->standing, svc->cluster, core, &view))
        return NULL;
    snprintf (svc->rsv_name, sizeof svc->rsv_name, "%s.%u.0", view.policy->name, view.index);
    return svc->rsv_name;
}

const char *resv_name (void *self, uint64_t core)
{
    struct svc *svc = self;
    const struct site_rsv *rsv = resv_of_core (svc, core);
    if (rsv)
        return rsv->rec.name;
    if (core & RSV_STANDING_BASE)
        return standing_name (svc, core);
    if (core & RSV_NAME_BASE)
        return strtab_name (svc->rsv_names, (uint32_t)(core & ~RSV_NAME_BASE));
    return NULL;
}

/* --- standing ones ------------------------------------------------------------------------------ */

static const char *node_name_of (void *self, uint32_t node)
{
    return ((struct svc *)self)->node_by_id[node]->name;
}

static uint32_t feature_of (void *self, const char *name)
{
    return strtab_find (((struct svc *)self)->features, name);
}

static uint32_t partition_of (void *self, const char *name)
{
    uint32_t at = strtab_find (((struct svc *)self)->names->partition, name);
    return at == STRTAB_NONE ? PARTITION_ANY : at + 1;
}

static struct rsv_id named_of (void *self, const char *name)
{
    return resv_named (self, name);
}

static void standing_note (void *self, const char *sentence)
{
    struct svc *svc = self;
    char quoted[600];
    log_event (svc->log, LOG_LEVEL_WARN, "resv", "standing", "what=%s",
               log_quote (sentence, quoted, sizeof quoted));
}

void resv_standing_open (struct svc *svc)
{
    struct standing_site site = {.self = svc,
                                 .node_name = node_name_of,
                                 .feature = feature_of,
                                 .partition = partition_of,
                                 .named = named_of,
                                 .note = standing_note};
    svc->standing = standing_create (&site);
}

static const char standing_blob[] = "standing";

void resv_standing_regain (struct svc *svc)
{
    struct err err = {0};
    void *text = NULL;
    size_t len = 0;
    int rc = local_store_blob_get (svc->store, standing_blob, &text, &len, &err);
    if (rc == 0 && len > 0) {
        char *lines = malloc (len + 1);
        assert (lines);
        memcpy (lines, text, len);
        lines[len] = 0;
        standing_regain (svc->standing, lines);
        free (lines);
    } else if (rc != 0 && rc != ERR_NOT_FOUND) {
        log_event (svc->log, LOG_LEVEL_ERROR, "resv", "standing_not_regained", "error=\"%s\"",
                   err.text);
    }
    free (text);
}

void resv_standing_roll (struct svc *svc, time_us now)
{
    struct err err = {0};
    char *lines;
    standing_roll (svc->standing, svc->cluster, now);
    lines = standing_lines (svc->standing, svc->cluster);
    if (!lines)
        return;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (svc->store, standing_blob, lines, strlen (lines), &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "resv", "standing_not_kept", "error=\"%s\"",
                   err.text);
    free (lines);
}

uint64_t resv_core (struct svc *svc, const char *name)
{
    const struct site_rsv *rsv = resv_find (svc, name);
    uint32_t count = cluster_rsv_list (svc->cluster, NULL, 0);
    struct rsv_id *id = arena_array (svc->call_arena, count + 1, sizeof *id);
    if (rsv)
        return RSV_ADMIN_BASE | rsv->rec.number;
    cluster_rsv_list (svc->cluster, id, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *own = id[i].v & RSV_STANDING_BASE ? standing_name (svc, id[i].v) : NULL;
        if (own && strcmp (own, name) == 0)
            return id[i].v;
    }
    return 0;
}

/* --- what is asked for ------------------------------------------------------------------------ */

/* "USERS bob:john\nGROUPS staff" … */
static int acl_line (struct svc *svc, const char *type, const char *value, struct acl_list *list,
                     struct err *err)
{
    static const char *const cred[CRED_KINDS] = {"USERS", "GROUPS", "ACCOUNTS", "CLASSES", "QOS"};
    for (int k = 0; k < CRED_KINDS; k++)
        if (strcmp (type, cred[k]) == 0)
            return acl_add_creds (list, svc->names, (enum cred_kind)k, value, err);
    if (strcmp (type, "JOBATTRS") == 0)
        return acl_add_jobattrs (list, value, err);
    if (strcmp (type, "DURATION") == 0)
        return acl_add_duration (list, value, err);
    if (strcmp (type, "PROCS") == 0)
        return acl_add_procs (list, value, err);
    return err_set (err, ERR_INTERNAL, "an access list of type %.40s", type);
}

static int acl_lines (struct svc *svc, const char *text, struct acl_list *list, struct err *err)
{
    int rc = 0;
    char *copy = strdup (text), *save = NULL;
    assert (copy);
    for (char *line = strtok_r (copy, "\n", &save); rc == 0 && line;
         line = strtok_r (NULL, "\n", &save)) {
        char *value = strchr (line, ' ');
        if (!value)
            continue;
        *value++ = 0;
        rc = acl_line (svc, line, value, list, err);
    }
    free (copy);
    return rc;
}

static int features_read (struct svc *svc, const char *text, struct rsv_ask *ask, struct err *err)
{
    while (*text) {
        size_t n = strcspn (text, ",: ");
        char name[STORE_NAME_MAX];
        snprintf (name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), text);
        uint32_t f = n ? strtab_find (svc->features, name) : 0;
        if (n > 0 && (f == STRTAB_NONE || f >= FEATURES_MAX))
            return err_set (err, ERR_NOT_FOUND, "no node of site %s has the feature %s", svc->site,
                            name);
        if (n > 0)
            ask->req.features.word[f / 64] |= UINT64_C (1) << (f % 64);
        text += n + (text[n] != 0);
    }
    return 0;
}

/* "TASKS==4", "TASKS>=4"; else hosts. */
static int expression_read (struct svc *svc, const char *text, struct rsv_ask *ask,
                            struct arena *arena, struct err *err)
{
    uint64_t n;
    if (strncasecmp (text, "TASKS", 5) == 0 && strpbrk (text, "=<>")) {
        const char *how = text + 5;
        ask->all = strncmp (how, ">=", 2) == 0;
        if (!ask->all && strncmp (how, "==", 2) != 0)
            return err_set (err, ERR_INVALID, "'%.60s': say TASKS==n or TASKS>=n", text);
        int rc = uint_parse (how + 2, "tasks", 1, TASKS_MAX, &n, err);
        ask->req.tasks = rc == 0 ? (uint32_t)n : 0;
        return rc;
    }
    const char **name = arena_array (arena, svc->node_count + 1, sizeof *name);
    bool *host = arena_array (arena, svc->node_count + 1, sizeof *host);
    for (uint32_t i = 0; i < svc->node_count; i++)
        name[i] = svc->node_by_id[i]->name;
    ask->host = host;
    ask->whole = ask->all = true;
    ask->req.tasks = 1;
    ask->flags |= RSV_FORCED;
    return hosts_match (text, name, svc->node_count, host, err);
}

/* Of named hosts, those in the partition. */
static int partition_read (struct svc *svc, const char *name, struct rsv_ask *ask,
                           struct arena *arena, struct err *err)
{
    struct node_view view;
    bool *host = arena_array (arena, svc->node_count + 1, sizeof *host), known = false, any = false;
    ask->req.partition = partition_of (svc, name);
    for (uint32_t i = 0; ask->req.partition != PARTITION_ANY && i < svc->node_count; i++) {
        bool there = cluster_node_get (svc->cluster, (struct node_id){i}, &view, NULL) == 0 &&
                     view.spec.partition == ask->req.partition;
        known = known || there;
        host[i] = there && (!ask->host || ask->host[i]);
        any = any || host[i];
    }
    if (!known)
        return err_set (err, ERR_NOT_FOUND, "site %s has no partition %.60s", svc->site, name);
    if (!any)
        return err_set (err, ERR_NOT_FOUND, "none of these nodes is in partition %.60s", name);
    ask->host = ask->host ? host : NULL;
    return 0;
}

/* What the record asks for, in the core's terms. The ACL and the owner are the caller's to free. */
static int resv_parse (struct svc *svc, const struct store_rsv *rec, struct site_rsv *out,
                       struct rsv_ask *ask, struct arena *arena, struct err *err)
{
    *ask = (struct rsv_ask){.start = rec->start, .end = rec->end, .flags = rec->flags};
    ask->req.tasks_per_node = rec->tasks_per_node;
    ask->req.task.v[RES_PROCS] = 1;
    int rc = acl_lines (svc, rec->acl ? rec->acl : "", &out->acl, err);
    if (rc == 0 && *rec->owner)
        rc = acl_owner (svc->names, rec->owner, &out->owner, err);
    if (rc == 0)
        rc = taskspec_read (rec->resources ? rec->resources : "", &ask->req.task, &ask->whole, err);
    if (rc == 0)
        rc = features_read (svc, rec->features ? rec->features : "", ask, err);
    if (rc == 0)
        rc = expression_read (svc, rec->expression, ask, arena, err);
    if (rc == 0 && *rec->partition && strcasecmp (rec->partition, "ALL") != 0)
        rc = partition_read (svc, rec->partition, ask, arena, err);
    if (rc != 0)
        acl_list_free (&out->acl);
    return rc;
}

/* --- in the core ------------------------------------------------------------------------------- */

static struct rsv_spec spec_of (struct svc *svc, const struct site_rsv *rsv, struct req *req)
{
    const struct store_rsv *rec = &rsv->rec;
    char whole[STORE_NAME_MAX];
    group_whole (rec, whole);
    return (struct rsv_spec){
        .id = {RSV_ADMIN_BASE | rec->number},
        .kind = RSV_ADMIN,
        .start = rec->start,
        .end = rec->end,
        .req_count = 1,
        .req = req,
        .flags = rec->flags,
        .acl_count = rsv->acl.count,
        .acl = rsv->acl.entry,
        .group = resv_named (svc, *whole ? whole : rec->name).v,
        .owned = *rec->owner != 0,
        .owner = rsv->owner,
        .placed = true,
    };
}

static int core_create (struct svc *svc, const struct site_rsv *rsv, const struct rsv_ask *ask,
                        const struct allocation *a, struct err *err)
{
    struct req req = ask->req;
    req.tasks = 0;
    for (uint32_t i = 0; i < a->count; i++)
        req.tasks += a->item[i].tasks;
    struct rsv_spec spec = spec_of (svc, rsv, &req);
    return cluster_rsv_create (svc->cluster, &spec, a, svc_now (svc), err);
}

static struct site_rsv *keep (struct svc *svc, struct store_rsv *rec, struct site_rsv *parsed)
{
    struct site_rsv *rsv = calloc (1, sizeof *rsv);
    assert (rsv);
    *rsv = *parsed;
    rsv->rec = *rec;
    *rec = (struct store_rsv){0};
    HASH_ADD (hh, svc->rsvs, rec.number, sizeof rsv->rec.number, rsv);
    return rsv;
}

static void forget (struct svc *svc, struct site_rsv *rsv)
{
    HASH_DEL (svc->rsvs, rsv);
    store_rsv_free (&rsv->rec);
    acl_list_free (&rsv->acl);
    free (rsv);
}

static void resv_close (struct svc *svc)
{
    struct site_rsv *rsv, *next;
    HASH_ITER (hh, svc->rsvs, rsv, next)
        forget (svc, rsv);
    standing_destroy (svc->standing);
}

void resv_forget_all (struct svc *svc)
{
    struct site_rsv *rsv, *next;
    HASH_ITER (hh, svc->rsvs, rsv, next) {
        (void)cluster_rsv_release (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number},
                                   svc_now (svc), NULL);
        forget (svc, rsv);
    }
}

/* --- making ------------------------------------------------------------------------------------ */

/* "john" -> "john.0", the first number that is free. */
static int name_give (struct svc *svc, struct store_rsv *rec, struct err *err)
{
    char base[STORE_NAME_MAX];
    text_printf (base, sizeof base, "%.50s", rec->name);
    if (name_check ("reservation", base, err) != 0)
        return ERR_INVALID;
    for (uint32_t i = 0; i <= SITE_RSVS_MAX; i++) {
        text_printf (rec->name, sizeof rec->name, "%.50s.%u", base, i);
        if (!resv_find (svc, rec->name))
            return 0;
    }
    return err_set (err, ERR_LIMIT, "there are %d reservations of the name %s", SITE_RSVS_MAX,
                    base);
}

static int placed_check (const struct rsv_ask *ask, const struct rsv_place *place,
                         const struct store_rsv *rec, struct err *err)
{
    if (place->allocation.count == 0)
        return err_set (err, ERR_CONFLICT,
                        ask->host ? "%s: no node of these is up and free of co-allocated jobs"
                                  : "%s: no node has room for it in that time",
                        rec->expression);
    if (place->tasks < ask->req.tasks)
        return err_set (err, ERR_CONFLICT, "%s: there is room for %u tasks in that time",
                        rec->expression, place->tasks);
    return 0;
}

/* An administrator who names hosts is told which of them a co-allocated job was promised. */
static int hosts_all (struct svc *svc, const struct rsv_ask *ask, const struct rsv_place *place,
                      struct err *err)
{
    bool *got = arena_array (svc->call_arena, svc->node_count + 1, sizeof *got);
    struct node_view view;
    for (uint32_t i = 0; i < place->allocation.count; i++)
        got[place->allocation.item[i].node.v] = true;
    for (uint32_t n = 0; ask->host && n < svc->node_count; n++)
        if (ask->host[n] && !got[n] &&
            cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) == 0 &&
            view.state == NODE_UP)
            return err_set (err, ERR_CONFLICT,
                            "node %s is promised to a co-allocated job in that time, which no "
                            "reservation displaces",
                            svc->node_by_id[n]->name);
    return 0;
}

static int create_durable (struct svc *svc, const struct admin_caller *caller,
                           const struct store_rsv *rec, struct err *err)
{
    int rc = local_store_rsv_put (svc->store, rec, err);
    if (rc == 0)
        rc = admin_audit_in (svc, caller, err, "setres %s %s", rec->name, rec->expression);
    return rc;
}

int resv_create (struct svc *svc, const struct admin_caller *caller, struct store_rsv *rec,
                 struct site_rsv **out, struct err *err)
{
    struct site_rsv parsed = {0};
    struct rsv_ask ask;
    struct rsv_place place = {0};
    time_us now = svc_now (svc);
    if (HASH_COUNT (svc->rsvs) >= SITE_RSVS_MAX)
        return err_set (err, ERR_LIMIT, "there are %d reservations already", SITE_RSVS_MAX);
    if (rec->start < now)
        rec->start = now;
    if (rec->end <= rec->start)
        return err_set (err, ERR_INVALID, "the reservation would end before it starts");
    int rc = resv_parse (svc, rec, &parsed, &ask, svc->call_arena, err);
    if (rc == 0)
        rc = cluster_rsv_place (svc->cluster, &ask, now, svc->call_arena, &place, err);
    if (rc == 0)
        rc = placed_check (&ask, &place, rec, err);
    if (rc == 0)
        rc = hosts_all (svc, &ask, &place, err);
    if (rc == 0)
        rc = name_give (svc, rec, err);
    if (rc == 0) {
        rec->start = place.start;
        rec->end = place.end;
        rec->tasks_wanted = ask.host ? 0 : ask.req.tasks;
        free (rec->placement);
        rec->placement = placement_text (svc, &place.allocation);
        rc = svc_begin (svc, err);
        if (rc == 0)
            rc = local_store_next (svc->store, "rsv", &rec->number, err);
        parsed.rec = *rec;
        if (rc == 0) /* before it is durable: the core may still refuse */
            rc = core_create (svc, &parsed, &ask, &place.allocation, err);
        bool made = rc == 0;
        if (rc == 0)
            rc = create_durable (svc, caller, rec, err);
        rc = svc_commit (svc, rc, err);
        if (rc != 0 && made)
            cluster_rsv_release (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rec->number}, now,
                                 NULL);
    }
    if (rc != 0) {
        acl_list_free (&parsed.acl);
        return rc;
    }
    *out = keep (svc, rec, &parsed);
    pass_wake (svc);
    return 0;
}

int resv_adopt (struct svc *svc, struct store_rsv *rec, const struct allocation *a,
                struct site_rsv **out, struct err *err)
{
    struct site_rsv parsed = {0};
    struct rsv_ask ask;
    if (HASH_COUNT (svc->rsvs) >= SITE_RSVS_MAX)
        return err_set (err, ERR_LIMIT, "there are %d reservations already", SITE_RSVS_MAX);
    int rc = resv_parse (svc, rec, &parsed, &ask, svc->call_arena, err);
    if (rc == 0)
        rc = name_give (svc, rec, err);
    if (rc == 0)
        rc = local_store_next (svc->store, "rsv", &rec->number, err);
    if (rc == 0) {
        free (rec->placement);
        rec->placement = placement_text (svc, a);
        parsed.rec = *rec;
        rc = core_create (svc, &parsed, &ask, a, err);
    }
    if (rc == 0 && (rc = local_store_rsv_put (svc->store, rec, err)) != 0)
        cluster_rsv_release (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rec->number},
                             svc_now (svc), NULL);
    if (rc != 0)
        acl_list_free (&parsed.acl);
    else
        *out = keep (svc, rec, &parsed);
    return rc;
}

void resv_disown (struct svc *svc, struct site_rsv *rsv)
{
    cluster_rsv_release (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number},
                         svc_now (svc), NULL);
    forget (svc, rsv);
}

/* --- other terms --------------------------------------------------------------------------------- */

struct site_rsv *resv_of_part (struct svc *svc, uint64_t job)
{
    struct site_rsv *rsv, *next;
    HASH_ITER (hh, svc->rsvs, rsv, next)
        if (rsv->rec.part == job)
            return rsv;
    return NULL;
}

/* The first so many tasks of what it has. */
static int resv_fewer (struct svc *svc, struct site_rsv *rsv, uint32_t tasks, struct err *err)
{
    struct rsv_id core = {RSV_ADMIN_BASE | rsv->rec.number};
    struct rsv_view view;
    int rc = cluster_rsv_get (svc->cluster, core, &view, err);
    if (rc != 0)
        return rc;
    struct allocation a = {
        .item = arena_array (svc->call_arena, view.allocation.count + 1, sizeof *a.item)};
    uint32_t left = tasks;
    for (uint32_t i = 0; i < view.allocation.count && left; i++) {
        struct placement item = view.allocation.item[i];
        item.tasks = (item.tasks < left ? item.tasks : left) & TASKS_MAX;
        left -= item.tasks;
        a.item[a.count++] = item;
    }
    rc = cluster_rsv_move (svc->cluster, core, tasks - left, &a, svc_now (svc), err);
    if (rc != 0)
        return rc;
    free (rsv->rec.placement);
    rsv->rec.placement = placement_text (svc, &a);
    return 0;
}

int resv_change (struct svc *svc, struct site_rsv *rsv, time_us end, uint32_t tasks,
                 const char *acl, struct err *err)
{
    struct acl_list list = {0};
    char text[32];
    int rc = acl_lines (svc, acl, &list, err);
    if (rc == 0)
        rc = cluster_rsv_change (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number},
                                 end, list.count, list.entry, svc_now (svc), err);
    if (rc == 0 && tasks < rsv->rec.tasks_wanted)
        rc = resv_fewer (svc, rsv, tasks, err);
    if (rc != 0) {
        acl_list_free (&list);
        return rc;
    }
    acl_list_free (&rsv->acl);
    rsv->acl = list;
    rsv->rec.end = end;
    rsv->rec.tasks_wanted = tasks;
    text_printf (text, sizeof text, "TASKS==%u", tasks);
    free (rsv->rec.expression);
    rsv->rec.expression = strdup (text);
    if (acl != rsv->rec.acl) {
        free (rsv->rec.acl);
        rsv->rec.acl = strdup (acl);
    }
    pass_wake (svc);
    return local_store_rsv_put (svc->store, &rsv->rec, err);
}

/* --- ending ------------------------------------------------------------------------------------- */

static int drop (struct svc *svc, const struct admin_caller *caller, struct site_rsv *rsv,
                 struct err *err)
{
    struct err local = {0};
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_rsv_delete (svc->store, rsv->rec.number, err);
    if (rc == 0 && caller)
        rc = admin_audit_in (svc, caller, err, "releaseres %s", rsv->rec.name);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        return rc;
    cluster_rsv_release (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number},
                         svc_now (svc), &local); /* not there: SINGLEUSE, used up */
    forget (svc, rsv);
    return 0;
}

int resv_release (struct svc *svc, const struct admin_caller *caller, struct site_rsv *rsv,
                  struct err *err)
{
    int rc = drop (svc, caller, rsv, err);
    if (rc == 0)
        pass_wake (svc);
    return rc;
}

uint32_t resv_tasks_up (struct svc *svc, const struct allocation *a, bool whole)
{
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        struct node_view view;
        if (cluster_node_get (svc->cluster, a->item[i].node, &view, NULL) == 0 &&
            view.state == NODE_UP)
            tasks += whole ? 1 : a->item[i].tasks;
    }
    return tasks;
}

bool resv_unfilled (struct svc *svc, uint64_t core)
{
    const struct site_rsv *rsv = resv_of_core (svc, core);
    struct standing_view standing;
    struct rsv_view view;
    struct node_view node;
    if (standing_get (svc->standing, svc->cluster, core, &standing))
        return standing.have < standing.wanted;
    if (cluster_rsv_get (svc->cluster, (struct rsv_id){core}, &view, NULL) != 0)
        return false;
    if (rsv && rsv->rec.tasks_wanted)
        return resv_tasks_up (svc, &view.allocation, false) < rsv->rec.tasks_wanted;
    for (uint32_t k = 0; k < view.allocation.count; k++)
        if (cluster_node_get (svc->cluster, view.allocation.item[k].node, &node, NULL) == 0 &&
            node.state != NODE_UP)
            return true;
    return false;
}

/* SPACEFLEX: other nodes in place of lost ones. The core first: nothing is lost if the rest fails. */
static int refill (struct svc *svc, struct site_rsv *rsv, const struct rsv_view *view,
                   struct err *err)
{
    struct site_rsv parsed = {0};
    struct rsv_ask ask;
    struct rsv_place place;
    time_us now = svc_now (svc);
    arena_reset (svc->call_arena);
    int rc = resv_parse (svc, &rsv->rec, &parsed, &ask, svc->call_arena, err);
    if (rc != 0)
        return rc;
    acl_list_free (&parsed.acl);
    uint32_t have = resv_tasks_up (svc, &view->allocation, ask.whole);
    if (ask.host || have >= rsv->rec.tasks_wanted)
        return 0;
    ask.start = ask.start > now ? ask.start : now;
    ask.all = false;
    ask.flags &= ~(uint32_t)RSV_TIMEFLEX;
    ask.keep = view->allocation;
    rc = cluster_rsv_place (svc->cluster, &ask, now, svc->call_arena, &place, err);
    if (rc != 0 || place.tasks <= have)
        return rc;
    rc = cluster_rsv_move (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number},
                           place.task_sum, &place.allocation, now, err);
    if (rc != 0)
        return rc;
    free (rsv->rec.placement);
    rsv->rec.placement = placement_text (svc, &place.allocation);
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_rsv_put (svc->store, &rsv->rec, err);
    rc = svc_commit (svc, rc, err);
    log_event (svc->log, LOG_LEVEL_INFO, "resv", "refilled", "name=%s tasks=%u of=%u",
               rsv->rec.name, place.tasks, rsv->rec.tasks_wanted);
    pass_wake (svc);
    return rc;
}

/* What is over is gone, what lost nodes and may have others gets them. */
static void resv_tidy (struct svc *svc)
{
    struct site_rsv *rsv, *next;
    HASH_ITER (hh, svc->rsvs, rsv, next) {
        struct err err = {0};
        struct rsv_view view;
        bool there =
            cluster_rsv_get (svc->cluster, (struct rsv_id){RSV_ADMIN_BASE | rsv->rec.number}, &view,
                             NULL) == 0;
        int rc = 0;
        bool over = rsv->rec.end <= svc_now (svc) ||
                    (rsv->rec.part && !svc_job (svc, rsv->rec.part)); /* cancelled, or restored */
        if (!there || over) {
            log_event (svc->log, LOG_LEVEL_INFO, "resv", there ? "ended" : "used_up", "name=%s",
                       rsv->rec.name);
            rc = drop (svc, NULL, rsv, &err);
        } else if (rsv->rec.flags & RSV_SPACEFLEX) {
            rc = refill (svc, rsv, &view, &err);
        }
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "resv", "tidy_failed", "error=\"%s\"", err.text);
    }
}

/* --- after a restart ------------------------------------------------------------------------------ */

static int recover_one (void *arg, struct store_rsv *rec, struct err *err)
{
    struct svc *svc = arg;
    struct site_rsv parsed = {0};
    struct rsv_ask ask;
    struct err local = {0};
    (void)err;
    arena_reset (svc->call_arena);
    int rc = resv_parse (svc, rec, &parsed, &ask, svc->call_arena, &local);
    if (rc == 0) {
        struct allocation a = placement_parse (svc, rec->placement, svc->call_arena);
        parsed.rec = *rec;
        rc = rec->end > svc_now (svc) ? core_create (svc, &parsed, &ask, &a, &local) : 0;
    }
    if (rc != 0) /* its hosts are gone from the configuration, say; it stays in the store */
        log_event (svc->log, LOG_LEVEL_ERROR, "resv", "not_regained", "name=%s error=\"%s\"",
                   rec->name, local.text);
    if (rc == 0)
        (void)keep (svc, rec, &parsed);
    else
        acl_list_free (&parsed.acl);
    store_rsv_free (rec);
    return 0;
}

int resv_recover (struct svc *svc, struct err *err)
{
    return local_store_rsvs (svc->store, recover_one, svc, err);
}

const struct svc_listener resv_listener = {.pass_done = resv_tidy, .close = resv_close};
