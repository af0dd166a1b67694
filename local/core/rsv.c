/* Events of reservations: made, moved, committed, released. What of them others see is in access.c and view.c. */
#include <stdlib.h>
#include <string.h>

#include "local/core/state.h"

void rsv_used_up (struct cluster *c, struct job_id job)
{
    for (uint32_t i = 0; c->access && i < c->rsv_count;) {
        if (c->rsv[i]->used_by.v == job.v)
            (void)cluster_rsv_release (c, c->rsv[i]->spec.id, c->now, NULL);
        else
            i++;
    }
}

void rsv_free (struct rsv *rsv)
{
    free ((void *)rsv->spec.req);
    free ((void *)rsv->spec.acl);
    free ((void *)rsv->spec.who);
    free ((void *)rsv->spec.licence);
    free (rsv->allocation.item);
    free (rsv);
}

static uint32_t rsv_position (const struct cluster *c, uint64_t id)
{
    uint32_t low = 0, high = c->rsv_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->rsv[mid]->spec.id.v < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct rsv *rsv_find (const struct cluster *c, struct rsv_id id)
{
    uint32_t at = rsv_position (c, id.v);

    return at < c->rsv_count && c->rsv[at]->spec.id.v == id.v ? c->rsv[at] : NULL;
}

/* An ACL reservation is told by node: one placement each. */
static int rsv_admin_check (const struct cluster *c, const struct rsv_spec *spec,
                            const struct allocation *a, struct err *err)
{
    struct arena *arena;
    bool *seen, twice = false;

    if (spec->req_count != 1)
        return err_set (err, ERR_INVALID, "reservation %llu: one kind of tasks, not %u",
                        (unsigned long long)spec->id.v, spec->req_count);
    arena = arena_create (0);
    seen = arena_array (arena, c->node_count + 1, sizeof *seen);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->item[i].node.v >= c->node_count)
            break; /* allocation_check says so */
        twice = twice || seen[a->item[i].node.v];
        seen[a->item[i].node.v] = true;
    }
    arena_destroy (arena);
    if (twice)
        return err_set (err, ERR_INVALID, "reservation %llu names a node twice",
                        (unsigned long long)spec->id.v);
    return 0;
}

static int rsv_check (const struct cluster *c, const struct rsv_spec *spec,
                      const struct allocation *a, struct err *err)
{
    if (spec->id.v == 0)
        return err_set (err, ERR_INVALID, "reservation: number 0 stands for none");
    if (rsv_find (c, spec->id))
        return err_set (err, ERR_EXISTS, "reservation %llu is there already",
                        (unsigned long long)spec->id.v);
    if (spec->instead && spec->instead == spec->whose)
        return err_set (err, ERR_INVALID, "reservation %llu is to come instead of itself",
                        (unsigned long long)spec->id.v);
    if (spec->end <= spec->start)
        return err_set (err, ERR_INVALID, "reservation %llu ends before it starts",
                        (unsigned long long)spec->id.v);
    if (spec->req_count < 1 || spec->req_count > REQS_MAX)
        return err_set (err, ERR_INVALID, "reservation %llu has %u reqs, must be 1 to %d",
                        (unsigned long long)spec->id.v, spec->req_count, REQS_MAX);
    if (spec->kind == RSV_ADMIN && rsv_admin_check (c, spec, a, err) != 0)
        return err ? err->code : ERR_INVALID;
    if (licences_check (c, spec->licence, spec->licence_count, err) != 0)
        return err_prefix (err, "reservation %llu", (unsigned long long)spec->id.v);
    return allocation_check (c, spec->req, spec->req_count, a, err);
}

static void parts_add (const struct cluster *c, const struct rsv *part, uint32_t node,
                       struct resources *sum)
{
    for (uint32_t i = 0; i < part->allocation.count; i++) {
        const struct placement *p = &part->allocation.item[i];
        const struct req *req = &part->spec.req[p->req];
        for (uint32_t d = 0; p->node.v == node && d < c->dims; d++)
            sum->v[d] +=
                req->exclusive ? row (c, c->cap, node)[d] : (int32_t)p->tasks * req->task.v[d];
    }
}

/* Parts that the reservation admits may lie inside it. */
static bool part_matters (const struct rsv *part, const struct rsv_spec *spec)
{
    uint8_t affinity;

    return part->spec.kind != RSV_ADMIN && part->spec.start < spec->end &&
           spec->start < part->spec.end &&
           !(part->spec.who && access_admits (spec, part->spec.who, &affinity));
}

int rsv_spares_parts (const struct cluster *c, const struct rsv_spec *spec,
                      const struct allocation *a, struct err *err)
{
    uint32_t matter = 0;

    for (uint32_t r = 0; r < c->rsv_count; r++)
        matter += part_matters (c->rsv[r], spec);
    for (uint32_t i = 0; matter > 0 && i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        struct resources sum = {{0}};
        bool some = false;
        for (uint32_t r = 0; r < c->rsv_count; r++) {
            struct resources before = sum;
            if (part_matters (c->rsv[r], spec))
                parts_add (c, c->rsv[r], node, &sum);
            some = some || memcmp (&before, &sum, sizeof sum) != 0;
        }
        for (uint32_t d = 0; some && d < c->dims; d++) {
            int64_t want = (spec->flags & RSV_DEDICATEDNODE) || spec->req[0].exclusive
                               ? row (c, c->cap, node)[d]
                               : (int64_t)a->item[i].tasks * spec->req[0].task.v[d];
            if (sum.v[d] + want > row (c, c->cap, node)[d])
                return err_set (err, ERR_CONFLICT,
                                "reservation %llu: node %u is promised to a co-allocated job in "
                                "that time",
                                (unsigned long long)spec->id.v, node);
        }
    }
    return 0;
}

static void rsv_changed (struct cluster *c, const struct rsv_spec *spec)
{
    c->version++;
    c->lasting += endless (spec->end) || spec->again.series;
    event_frees (c);
    if (spec->kind == RSV_ADMIN)
        access_changed (c);
}

/* May it lie there? */
static int rsv_fits (struct cluster *c, const struct rsv_spec *spec, const struct allocation *a,
                     struct err *err)
{
    if (spec->kind != RSV_ADMIN)
        return timeline_conflict (c, spec, a, c->now, err);
    if (rsv_spares_parts (c, spec, a, err) != 0)
        return err ? err->code : ERR_CONFLICT;
    return (spec->flags & RSV_FORCED) || spec->placed ? 0
                                                      : timeline_conflict (c, spec, a, c->now, err);
}

int cluster_rsv_create (struct cluster *c, const struct rsv_spec *spec,
                        const struct allocation *allocation, time_us now, struct err *err)
{
    uint32_t at;
    struct rsv *rsv;

    if (rsv_check (c, spec, allocation, err) != 0)
        return err->code;
    event_begin (c, now);
    cluster_settle (c);
    if (rsv_fits (c, spec, allocation, err) != 0)
        return err->code;
    rsv = mem_zero (1, sizeof *rsv);
    rsv->spec = *spec;
    rsv->spec.req = mem_copy (spec->req, spec->req_count * sizeof *spec->req);
    rsv->spec.acl =
        spec->acl_count ? mem_copy (spec->acl, spec->acl_count * sizeof *spec->acl) : NULL;
    if (spec->who)
        rsv->spec.who = mem_copy (spec->who, sizeof *spec->who);
    rsv->spec.licence = spec->licence_count
                            ? mem_copy (spec->licence, spec->licence_count * sizeof *spec->licence)
                            : NULL;
    rsv->allocation.count = allocation->count;
    rsv->allocation.item =
        mem_copy (allocation->item, allocation->count * sizeof *allocation->item);
    at = rsv_position (c, spec->id.v);
    c->rsv = mem_grow (c->rsv, &c->rsv_cap, c->rsv_count + 1, sizeof *c->rsv);
    memmove (c->rsv + at + 1, c->rsv + at, (c->rsv_count - at) * sizeof *c->rsv);
    c->rsv[at] = rsv;
    c->rsv_count++;
    rsv_changed (c, spec);
    return 0;
}

int cluster_rsv_move (struct cluster *c, struct rsv_id id, uint32_t tasks,
                      const struct allocation *allocation, time_us now, struct err *err)
{
    struct rsv *rsv = rsv_find (c, id);
    struct rsv_spec spec;
    struct req req;
    int rc;

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    if (rsv->spec.kind != RSV_ADMIN)
        return err_set (err, ERR_CONFLICT, "reservation %llu is a co-allocated job's",
                        (unsigned long long)id.v);
    spec = rsv->spec;
    req = spec.req[0];
    req.tasks = tasks;
    spec.req = &req;
    rc = rsv_admin_check (c, &spec, allocation, err);
    if (rc == 0)
        rc = allocation_check (c, &req, 1, allocation, err);
    if (rc == 0)
        rc = rsv_spares_parts (c, &spec, allocation, err);
    if (rc != 0)
        return rc;
    event_begin (c, now);
    ((struct req *)rsv->spec.req)->tasks = tasks;
    free (rsv->allocation.item);
    rsv->allocation.count = allocation->count;
    rsv->allocation.item =
        mem_copy (allocation->item, allocation->count * sizeof *allocation->item);
    rsv_changed (c, &rsv->spec);
    return 0;
}

int cluster_rsv_change (struct cluster *c, struct rsv_id id, time_us end, uint32_t acl_count,
                        const struct acl_entry *acl, time_us now, struct err *err)
{
    struct rsv *rsv = rsv_find (c, id);
    struct rsv_spec more;

    if (rsv == NULL || rsv->spec.kind != RSV_ADMIN)
        return err_set (err, ERR_NOT_FOUND, "there is no ACL reservation %llu",
                        (unsigned long long)id.v);
    if (end <= rsv->spec.start || endless (end) || endless (rsv->spec.end))
        return err_set (err, ERR_INVALID, "a reservation ends after it starts, at some moment");
    event_begin (c, now);
    cluster_settle (c);
    more = rsv->spec;
    more.start = rsv->spec.end;
    more.end = end;
    more.placed = false; /* nobody has looked whether it can lie there */
    if (end > rsv->spec.end && rsv_fits (c, &more, &rsv->allocation, err) != 0)
        return err ? err->code : ERR_CONFLICT;
    rsv->spec.end = end;
    free ((void *)(uintptr_t)rsv->spec.acl);
    rsv->spec.acl = acl_count ? mem_copy (acl, acl_count * sizeof *acl) : NULL;
    rsv->spec.acl_count = acl_count;
    rsv_changed (c, &rsv->spec);
    return 0;
}

int cluster_rsv_commit (struct cluster *c, struct rsv_id id, time_us now, struct err *err)
{
    struct rsv *rsv = rsv_find (c, id);

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    if (rsv->spec.kind == RSV_FIRM)
        return 0;
    if (rsv->spec.kind != RSV_COURTESY)
        return err_set (err, ERR_CONFLICT, "reservation %llu is not a courtesy hold",
                        (unsigned long long)id.v);
    event_begin (c, now);
    rsv->spec.kind = RSV_FIRM;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_rsv_release (struct cluster *c, struct rsv_id id, time_us now, struct err *err)
{
    uint32_t at = rsv_position (c, id.v);

    if (at >= c->rsv_count || c->rsv[at]->spec.id.v != id.v)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    event_begin (c, now);
    rsv_changed (c, &c->rsv[at]->spec);
    rsv_free (c->rsv[at]);
    c->rsv_count--;
    memmove (c->rsv + at, c->rsv + at + 1, (c->rsv_count - at) * sizeof *c->rsv);
    return 0;
}

int cluster_rsv_get (const struct cluster *c, struct rsv_id id, struct rsv_view *out,
                     struct err *err)
{
    const struct rsv *rsv = rsv_find (c, id);

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    *out = (struct rsv_view){&rsv->spec, rsv->allocation, rsv->used_by};
    return 0;
}

uint32_t cluster_rsv_list (const struct cluster *c, struct rsv_id *out, uint32_t cap)
{
    for (uint32_t i = 0; i < c->rsv_count && i < cap; i++)
        out[i] = c->rsv[i]->spec.id;
    return c->rsv_count;
}
