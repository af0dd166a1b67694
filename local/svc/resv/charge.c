/* What a reservation keeps idle is charged to its account (setres -c, SRCFG CHARGEACCOUNT): processors that
 * it has on nodes that are up and that no job has. Jobs inside pay for themselves.
 *
 * A stretch is so many processors for some time. It ends when their number changes, with the day (UTC) and
 * with the reservation; it is charged with the transaction that ends it, under a number of its own, as use
 * without a hold, by the site's word for who pays. What began is in the store, so that nothing is lost with
 * the daemon: the next pass after a restart goes on with it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job/charge.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/nui/v1/bank.pb-c.h"

static const duration_us day = INT64_C (86400) * US_PER_S;

struct resv_idle {
    struct store_idle rec;
    bool standing;     /* its reservation does, in this pass */
    UT_hash_handle hh; /* by rec.core */
};

/* "phys:bob" of an administrator's or standing reservation. */
static bool charge_of (struct svc *svc, uint64_t core, const char **account_out,
                       const char **user_out, char text[2 * STORE_NAME_MAX])
{
    const struct site_rsv *rsv = resv_of_core (svc, core);
    struct standing_view standing;
    char *colon;
    if (standing_get (svc->standing, svc->cluster, core, &standing)) {
        *account_out = standing.policy->charge_account;
        *user_out = standing.policy->charge_user;
        return *account_out != NULL;
    }
    if (!rsv || !*rsv->rec.charge)
        return false;
    text_printf (text, 2 * STORE_NAME_MAX, "%s", rsv->rec.charge);
    colon = strchr (text, ':');
    assert (colon && "resv_charge_parse wrote it");
    *colon = 0;
    *account_out = text;
    *user_out = colon + 1;
    return true;
}

char *resv_charge_text (struct svc *svc, uint64_t core, struct arena *arena)
{
    char text[2 * STORE_NAME_MAX];
    const char *account, *user;
    return charge_of (svc, core, &account, &user, text)
               ? arena_printf (arena, "%s:%s", account, user)
               : arena_strdup (arena, "");
}

int resv_charge_parse (struct svc *svc, const char *charge, const char *owner, const char *caller,
                       struct store_rsv *rec, struct err *err)
{
    const char *user = strchr (charge, ':');
    char account[STORE_NAME_MAX];
    if (!*charge)
        return 0;
    snprintf (account, sizeof account, "%.*s",
              (int)(user && user - charge < 63 ? user - charge : 63), charge);
    user = user ? user + 1 : strncasecmp (owner, "USER:", 5) == 0 ? owner + 5 : caller;
    if (name_check ("account", account, err) != 0 || name_check ("user", user, err) != 0)
        return ERR_INVALID;
    if (!svc->rm.ops->simulated && !svc->bank)
        return err_set (err, ERR_CONFLICT, "account %s cannot be charged: site %s has no bank",
                        account, svc->site);
    if (!svc->rm.ops->simulated && !gridmap_identity (svc->gridmap, user))
        return err_set (err, ERR_NOT_FOUND,
                        "account %s cannot be charged for user %.60s, whom the grid map does not "
                        "have: say ACCOUNT:USER with one who may use it",
                        account, user);
    text_printf (rec->charge, sizeof rec->charge, "%s:%.63s", account, user);
    return 0;
}

static uint32_t idle_procs (struct svc *svc, const struct rsv_view *view)
{
    int64_t idle = 0;
    for (uint32_t i = 0; i < view->allocation.count; i++) {
        const struct placement *p = &view->allocation.item[i];
        int64_t kept = (int64_t)p->tasks * view->spec->req[p->req].task.v[RES_PROCS];
        struct node_view node;
        if (cluster_node_get (svc->cluster, p->node, &node, NULL) != 0 || node.state != NODE_UP)
            continue;
        int64_t left = node.spec.configured.v[RES_PROCS] - node.dedicated.v[RES_PROCS];
        left = left > 0 ? left : 0;
        idle += kept < left ? kept : left;
    }
    return (uint32_t)idle;
}

/* --- a stretch ends --------------------------------------------------------------------------- */

static int idle_put (struct svc *svc, const struct store_idle *idle, time_us end, struct err *err)
{
    Nui__Bank__V1__ChargeRequest request = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    char id[2 * STORE_NAME_MAX + 2];
    uint64_t number;
    int rc = local_store_next (svc->store, "idle", &number, err);
    if (rc != 0)
        return rc;
    snprintf (id, sizeof id, "%s.%s", svc->site, idle->name);
    claim.identity = (char *)idle->identity;
    claim.account = (char *)idle->account;
    request.claim = &claim;
    request.site_job_id = request.grid_job_id = id;
    request.component = (char *)"idle";
    request.incarnation = (uint32_t)number;
    request.procs = idle->procs;
    request.start_us = idle->since;
    request.end_us = end;
    request.final = request.successful = true;
    return charge_idle (svc, &request, err);
}

/* The stretch that went on until `end` is charged; from there on it is `next` (NULL: nothing). */
static void stretch_change (struct svc *svc, struct resv_idle *idle, time_us end,
                            const struct store_idle *next)
{
    struct err err = {0};
    const struct store_idle *rec = &idle->rec;
    bool due = rec->procs > 0 && end > rec->since && *rec->identity;
    int rc = svc_begin (svc, &err);
    if (rc == 0 && due)
        rc = idle_put (svc, rec, end, &err);
    if (rc == 0)
        rc = next ? local_store_idle_put (svc->store, next, &err)
                  : local_store_idle_delete (svc->store, rec->core, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0 || rec->procs)
        log_event (svc->log, rc ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "resv",
                   rc ? "not_charged" : "idle",
                   "name=%s account=%s procs=%u us=%lld charged=%d%s%s", rec->name, rec->account,
                   rec->procs, (long long)(end > rec->since ? end - rec->since : 0), due,
                   rc ? " error=" : "", err.text);
    if (rc != 0)
        return; /* once more after the next pass */
    if (next) {
        idle->rec = *next;
    } else {
        HASH_DEL (svc->idles, idle);
        free (idle);
    }
    bank_link_poke (svc->bank);
}

/* --- all of them ------------------------------------------------------------------------------ */

static struct resv_idle *idle_add (struct svc *svc, const struct store_idle *rec)
{
    struct resv_idle *idle = calloc (1, sizeof *idle);
    assert (idle);
    idle->rec = *rec;
    HASH_ADD (hh, svc->idles, rec.core, sizeof idle->rec.core, idle);
    return idle;
}

static void settle_one (struct svc *svc, uint64_t core, time_us now)
{
    char text[2 * STORE_NAME_MAX];
    const char *account, *user, *identity;
    struct rsv_view view;
    struct resv_idle *idle;
    if (!charge_of (svc, core, &account, &user, text) ||
        cluster_rsv_get (svc->cluster, (struct rsv_id){core}, &view, NULL) != 0 ||
        view.spec->start > now || view.spec->end <= now)
        return;
    identity = gridmap_identity (svc->gridmap, user);
    struct store_idle next = {
        .core = core, .since = now, .end = view.spec->end, .procs = idle_procs (svc, &view)};
    snprintf (next.name, sizeof next.name, "%s", resv_name (svc, core));
    snprintf (next.account, sizeof next.account, "%s", account);
    snprintf (next.identity, sizeof next.identity, "%s", identity ? identity : "");
    HASH_FIND (hh, svc->idles, &core, sizeof core, idle);
    if (!idle) {
        struct store_idle none = next;
        none.procs = 0;
        idle = idle_add (svc, &none);
    } else if (idle->rec.procs == next.procs && idle->rec.since / day == now / day &&
               strcmp (idle->rec.name, next.name) == 0 &&
               strcmp (idle->rec.account, next.account) == 0 &&
               strcmp (idle->rec.identity, next.identity) == 0) {
        idle->standing = true;
        return;
    }
    idle->standing = true;
    if (idle->rec.procs || next.procs)
        stretch_change (svc, idle, now < idle->rec.end ? now : idle->rec.end, &next);
}

/* Stretches that are over are charged. */
static void resv_charge_settle (struct svc *svc)
{
    struct resv_idle *idle, *following;
    time_us now = svc_now (svc);
    uint32_t count = svc->bank ? cluster_rsv_list (svc->cluster, NULL, 0) : 0;
    struct rsv_id *id;
    if (!svc->bank || (count == 0 && !svc->idles))
        return;
    arena_reset (svc->call_arena);
    id = arena_array (svc->call_arena, count + 1, sizeof *id);
    cluster_rsv_list (svc->cluster, id, count);
    HASH_ITER (hh, svc->idles, idle, following)
        idle->standing = false;
    for (uint32_t i = 0; i < count; i++)
        settle_one (svc, id[i].v, now);
    HASH_ITER (hh, svc->idles, idle, following)
        if (!idle->standing)
            stretch_change (svc, idle, now < idle->rec.end ? now : idle->rec.end, NULL);
}

static void recover_one (void *arg, const struct store_idle *rec)
{
    (void)idle_add (arg, rec);
}

int resv_charge_recover (struct svc *svc, struct err *err)
{
    return local_store_idles (svc->store, recover_one, svc, err);
}

static void resv_charge_free (struct svc *svc)
{
    struct resv_idle *idle, *following;
    HASH_ITER (hh, svc->idles, idle, following) {
        HASH_DEL (svc->idles, idle);
        free (idle);
    }
}

const struct svc_listener resv_charge_listener = {.pass_done = resv_charge_settle,
                                                  .close = resv_charge_free};
