/* A part of a co-reservation (Job.reserve): no process is started for it. What is firm is a reservation with the ACL that its
 * user signed, which jobs name by the group's id (grid.42) or by its own; it stands until its end, or until
 * the part ends. The bank's hold bounds it until START; from then on what it keeps idle is charged (resv/charge.c), and jobs inside
 * pay for themselves. decide.c calls it; resv/resv.c drops the reservation of a part that is gone. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/link/gridmap.h"
#include "local/svc/coalloc/coalloc.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/job/element.h"

char *reserve_acl (struct svc *svc, const Nui__Common__V1__Job *job, const char *owner)
{
    char uri[PRINCIPAL_URI_MAX];
    struct strbuf text = STRBUF_INIT, *acl = &text;
    strbuf_printf (acl, "USERS %s", owner);
    for (size_t i = 0; i < job->reserve->n_users; i++) {
        struct principal who = {.kind = PRINCIPAL_USER};
        text_printf (who.grid, sizeof who.grid, "%s", job->grid);
        text_printf (who.name, sizeof who.name, "%s", job->reserve->users[i]);
        const char *account = gridmap_account (svc->gridmap, principal_uri (&who, uri));
        if (account && strcmp (account, owner) != 0)
            strbuf_printf (acl, ":%s", account);
    }
    strbuf_puts (acl, "\n");
    for (size_t i = 0; i < job->reserve->n_accounts; i++)
        strbuf_printf (acl, "%s%s", i ? ":" : "ACCOUNTS ", job->reserve->accounts[i]);
    if (job->reserve->n_accounts)
        strbuf_puts (acl, "\n");
    strbuf_text (acl);
    return strbuf_steal (acl);
}

Nui__Common__V1__Job *reserve_signed (struct site_part *part, struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_envelope (part->svc->store, part->job->rec.number, &bytes, &len, err);
    Nui__Common__V1__Envelope *envelope =
        rc == 0 ? nui__common__v1__envelope__unpack (NULL, len, bytes) : NULL;
    Nui__Common__V1__Job *job = envelope ? element_unpack (envelope, err) : NULL;
    free (bytes);
    if (envelope)
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
    if (job && job->reserve)
        return job;
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    if (rc == 0)
        err_set (err, ERR_INTERNAL, "the stored envelope cannot be read");
    return NULL;
}

static char *reserve_resources (const struct req *req)
{
    static const struct {
        const char *name;
        int dim;
    } of[] = {
        {"PROCS", RES_PROCS}, {"MEM", RES_MEM_MB}, {"SWAP", RES_SWAP_MB}, {"DISK", RES_DISK_MB}};
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (req->task.v[of[i].dim] > 0)
            strbuf_printf (&text, "%s%s=%d", text.len ? ";" : "", of[i].name,
                           (int)req->task.v[of[i].dim]);
    strbuf_text (&text);
    return strbuf_steal (&text);
}

/* "grid.42.left"; of a standing one "grid.42.3.left". */
static void reserve_name (const struct store_job *own, char *out, size_t cap)
{
    char group[STORE_NAME_MAX];
    size_t len = 0;
    for (const char *c = own->grid_job_id; *c && len + 1 < sizeof group; c++)
        if (*c != ']')
            group[len++] = *c == '[' ? '.' : *c;
    group[len] = '\0';
    text_printf (out, cap, "%.30s.%.19s", group, own->component);
}

static int reserve_record (struct site_part *part, struct store_rsv *rec, struct err *err)
{
    struct svc *svc = part->svc;
    const struct store_job *own = &part->job->rec;
    Nui__Common__V1__Job *job = reserve_signed (part, err);
    char text[32];
    if (!job)
        return err->code;
    reserve_name (own, rec->name, sizeof rec->name);
    text_printf (rec->grid, sizeof rec->grid, "%.63s", own->grid_job_id);
    rec->part = own->number;
    rec->start = part->rec.slot_start;
    rec->end = part->rec.slot_start + own->walltime;
    rec->flags = RSV_BYNAME | RSV_SPACEFLEX;
    rec->acl = reserve_acl (svc, job, own->local_account);
    rec->resources = reserve_resources (&part->job->reqs[0]);
    rec->features = strdup ("");
    text_printf (text, sizeof text, "TASKS==%u", part->job->reqs[0].tasks);
    rec->expression = strdup (text);
    rec->tasks_wanted = part->job->reqs[0].tasks;
    rec->tasks_per_node = part->job->reqs[0].tasks_per_node;
    text_printf (rec->owner, sizeof rec->owner, "USER:%.63s", own->local_account);
    if (svc->bank)
        text_printf (rec->charge, sizeof rec->charge, "%.63s:%.63s", own->pay_account,
                     own->local_account);
    nui__common__v1__job__free_unpacked (job, NULL);
    return 0;
}

int reserve_firm (struct site_part *part, struct err *err)
{
    struct svc *svc = part->svc;
    struct store_rsv rec = {0};
    struct site_rsv *rsv = NULL;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, part->job->rec.placement, svc->call_arena);
    int rc = reserve_record (part, &rec, err);
    if (rc != 0)
        goto out;
    if (part->rsv)
        (void)cluster_rsv_release (svc->cluster, (struct rsv_id){part->rec.job}, svc_now (svc),
                                   NULL);
    part->rsv = false;
    enum store_part_state before = part->rec.state;
    part->rec.state = STORE_PART_FIRM;
    svc_reason (part->job, "Reserved", "stands as reservation %s", rec.grid);
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = resv_adopt (svc, &rec, &a, &rsv, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = svc_job_write (svc, part->job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) { /* as it was: a courtesy hold */
        struct err again = {0};
        if (rsv)
            resv_disown (svc, rsv);
        part->rec.state = before;
        if (coalloc_rsv_regain (part, &again) != 0)
            daemon_stop (svc->daemon, &again);
    } else {
        coalloc_timer_arm (part);
        pass_wake (svc);
    }
out:
    store_rsv_free (&rec);
    return rc;
}

int reserve_start (struct site_part *part, const Nui__Local__V1__StartRequest *r, struct err *err)
{
    struct svc *svc = part->svc;
    struct site_job *job = part->job;
    free (part->rec.start);
    part->rec.start_len = nui__local__v1__start_request__get_packed_size (r);
    part->rec.start = malloc (part->rec.start_len + 1);
    assert (part->rec.start);
    nui__local__v1__start_request__pack (r, part->rec.start);
    part->rec.start_accepted = true;
    job->rec.launch_at = r->start_us;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = life_hold_return (svc, job, "Reserved", err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        daemon_stop (svc->daemon, err); /* found as it was after a restart */
    else
        bank_link_poke (svc->bank);
    return rc;
}

bool reserve_stands (const struct site_part *part)
{
    return part->job->reserves && part->rec.start_accepted;
}

time_us reserve_until (const struct site_part *part)
{
    return part->rec.slot_start + part->job->rec.walltime;
}

int reserve_over (struct site_part *part, struct err *err)
{
    svc_reason (part->job, "", "%s", "");
    return life_end_unstarted (part->svc, part->job, STORE_JOB_COMPLETED, err);
}
