/* rm_event: copies an event with all its texts into an arena, for the service (native/events.c),
 * which keeps events until the pass that is under way has ended. A text that is added to struct
 * rm_native must be listed here too. */
#include <string.h>

#include "local/rm/rm.h"
#include "proto/base/fnv.h"

static const char *text_copy (struct arena *arena, const char *text)
{
    return text ? arena_strdup (arena, text) : NULL;
}

/* Every text of a native job, so that none is forgotten in the middle of a list of assignments. */
static const size_t native_texts[] = {
    offsetof (struct rm_native, rm_id),         offsetof (struct rm_native, job_id),
    offsetof (struct rm_native, name),          offsetof (struct rm_native, user),
    offsetof (struct rm_native, group),         offsetof (struct rm_native, account),
    offsetof (struct rm_native, qos),           offsetof (struct rm_native, class_name),
    offsetof (struct rm_native, features),      offsetof (struct rm_native, licences),
    offsetof (struct rm_native, hosts),         offsetof (struct rm_native, hosts_excluded),
    offsetof (struct rm_native, gres_per_node), offsetof (struct rm_native, gres_per_task),
    offsetof (struct rm_native, gres_per_job),  offsetof (struct rm_native, dependency),
    offsetof (struct rm_native, array_id),      offsetof (struct rm_native, placement),
};

static const struct rm_native *natives_copy (struct arena *arena, const struct rm_native *list,
                                             uint32_t count)
{
    struct rm_native *copy = arena_memdup (arena, list, count * sizeof *copy);
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof native_texts / sizeof *native_texts; k++) {
            const char **text = (const char **)(void *)((char *)&copy[i] + native_texts[k]);
            *text = text_copy (arena, *text);
        }
    return copy;
}

void rm_event_copy (const struct rm_event *event, struct arena *arena, struct rm_event *out)
{
    *out = *event;
    out->job_id = text_copy (arena, event->job_id);
    out->placement = text_copy (arena, event->placement);
    out->rm_id = text_copy (arena, event->rm_id);
    if (event->status)
        out->status = arena_memdup (arena, event->status, sizeof *event->status);
    if (event->native_count)
        out->native = natives_copy (arena, event->native, event->native_count);
}

uint64_t rm_native_digest (const struct rm_native *n)
{
    uint64_t h = FNV_BEGIN;
    const char *const words[] = {n->name,     n->user,       n->group,          n->account,
                                 n->qos,      n->class_name, n->features,       n->gres_per_node,
                                 n->licences, n->hosts,      n->hosts_excluded, n->dependency,
                                 n->array_id, n->placement,  n->gres_per_task,  n->gres_per_job};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        h = fnv_text (h, words[i]);
    const int64_t numbers[] = {n->state,
                               n->nodes_min,
                               n->nodes_max,
                               n->tasks,
                               n->tasks_per_node,
                               n->procs,
                               n->procs_per_node_min,
                               n->memory_per_node_mb,
                               n->memory_per_proc_mb,
                               n->exclusive,
                               n->array_limit,
                               n->walltime,
                               n->begin,
                               n->held_user,
                               n->held_admin,
                               n->start,
                               n->unasked};
    h = fnv_bytes (h, numbers, sizeof numbers);
    return h ? h : 1;
}
