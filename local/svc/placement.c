/* Where jobs are, as text: "alpha01:2:0,…" of the store, and nodes by name. */
#include <stdio.h>
#include <string.h>

#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

struct site_node *svc_node (const struct svc *svc, const char *name)
{
    struct site_node *node;
    HASH_FIND_STR (svc->nodes, name, node);
    return node;
}

const char *node_address (struct svc *svc, const char *node_name)
{
    const struct site_node *node = svc_node (svc, node_name);
    return node && node->address ? node->address : svc->host;
}

char *placement_text (struct svc *svc, const struct allocation *allocation)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct placement *p = &allocation->item[i];
        strbuf_printf (&b, "%s%s:%u:%u", i ? "," : "", svc->node_by_id[p->node.v]->name, p->tasks,
                       p->req);
    }
    strbuf_text (&b);
    return strbuf_steal (&b);
}

bool placement_next (const struct svc *svc, const char **text, struct site_node **node_out,
                     unsigned *tasks_out, unsigned *req_out)
{
    char name[STORE_NAME_MAX];
    if (!*text || sscanf (*text, "%63[^:]:%u:%u", name, tasks_out, req_out) != 3)
        return false;
    *node_out = svc_node (svc, name);
    *text = strchr (*text, ',');
    *text = *text ? *text + 1 : NULL;
    return true;
}

struct allocation placement_parse (struct svc *svc, const char *text, struct arena *arena)
{
    struct allocation a = {0};
    uint32_t cap = 1;
    for (const char *p = text; p && *p; p++)
        cap += *p == ',';
    a.item = arena_array (arena, cap, sizeof *a.item);
    struct site_node *node;
    unsigned tasks, req;
    for (const char *p = text; placement_next (svc, &p, &node, &tasks, &req);)
        if (node)
            a.item[a.count++] = (struct placement){node->id, tasks & 0xffffff, req & 0xff};
    return a;
}
