/* What of a job's components could start together here, and when: the part of QUERY that a metascheduler asks before it sends
 * several to one site, since each alone may find the same nodes free. Reserves nothing. */
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

enum { OTHERS_MAX = 63, TOGETHER_ENOUGH = 4 };
#define OFFSET_MAX (INT64_MAX / 8)

/* What a question points to. */
struct member {
    struct jobspec spec;
    struct who who;
};

static int members_of (struct svc *svc, const Nui__Local__V1__QueryRequest *r,
                       const struct jobspec *spec, struct member *member,
                       struct query_member *asked, struct err *err)
{
    uint32_t count = (uint32_t)r->n_others + 1;
    if (r->n_others > OTHERS_MAX)
        return err_set (err, ERR_LIMIT, "a question about %zu more components: at most %d",
                        r->n_others, OTHERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const Nui__Local__V1__QueryMember *other = i ? r->others[i - 1] : NULL;
        int rc = 0;
        duration_us offset = 0;
        member[i].spec = *spec;
        if (other)
            rc = jobspec_sibling (svc, spec, other->component, other->shape, &member[i].spec, err);
        for (uint32_t k = 0; rc == 0 && k < i; k++)
            if (member[k].spec.component_index == member[i].spec.component_index)
                rc = err_set (err, ERR_INVALID, "component %.60s is asked for twice",
                              member[i].spec.component->name);
        if (rc == 0 && (__builtin_sub_overflow (member[i].spec.component->offset_us,
                                                spec->component->offset_us, &offset) ||
                        offset > OFFSET_MAX || offset < -OFFSET_MAX))
            rc = err_set (err, ERR_LIMIT, "component %.60s starts years from the others",
                          member[i].spec.component->name);
        if (rc != 0)
            return rc;
        member[i].who = jobspec_who (svc, &member[i].spec, jobspec_is_reserved (spec));
        asked[i] = (struct query_member){
            .query = {.req_count = member[i].spec.req_count,
                      .req = member[i].spec.reqs,
                      .licence_count = member[i].spec.licence_count,
                      .licence = member[i].spec.licence,
                      .duration = svc_part_duration (svc, member[i].spec.walltime),
                      .queue = true,
                      .instead = spec->instead,
                      .who = &member[i].who},
            .offset = offset};
    }
    return 0;
}

/* When their files can be here is in each component's own answer. */
int together_fill (struct svc *svc, const Nui__Local__V1__QueryRequest *r,
                   const struct jobspec *spec, time_us from, time_us until,
                   Nui__Local__V1__QueryReply *reply, struct err *err)
{
    time_us now = reply->now_us;
    struct arena *arena = svc->call_arena;
    struct member *member = arena_array (arena, r->n_others + 1, sizeof *member);
    struct query_member *asked = arena_array (arena, r->n_others + 1, sizeof *asked);
    struct query_set set;
    int rc = members_of (svc, r, spec, member, asked, err);
    for (size_t i = 0; rc == 0 && i <= r->n_others; i++) /* none begins in the past */
        if (from < now - asked[i].offset)
            from = now - asked[i].offset;
    if (rc == 0)
        rc = query_set (svc->cluster, asked, (uint32_t)r->n_others + 1, from, until,
                        TOGETHER_ENOUGH, now, arena, &set, err);
    if (rc != 0)
        return rc;
    reply->together = arena_array (arena, set.count + 1, sizeof *reply->together);
    for (uint32_t i = 0; i < set.count; i++) {
        Nui__Local__V1__Together *t = arena_new (arena, Nui__Local__V1__Together);
        nui__local__v1__together__init (t);
        t->begin_us = set.step[i].begin;
        t->end_us = set.step[i].end;
        t->members = set.step[i].members;
        reply->together[reply->n_together++] = t;
    }
    reply->together_looked = set.looked;
    reply->together_until_us = set.until;
    return 0;
}
