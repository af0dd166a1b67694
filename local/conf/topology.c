/* topology: reads the file of switches line by line, and finds for each the nodes below it.
 * place.c calls it. The file may name a switch before it defines it; one that is never defined,
 * or stands above itself, is refused with the reason. */
#include "local/conf/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/hostlist.h"

struct reader {
    struct place *place;
    struct arena *arena;
    uint32_t count;
    struct one_switch {
        const char *nodes, *switches;
        uint32_t line;
        uint32_t level;
        bool said, done, doing;
        uint32_t node_count;
        struct node_id *node;
    } * sw; /* by number in place->sw */
};

static int word_take (struct reader *r, struct one_switch **at, char *word, uint32_t line,
                      struct err *err)
{
    char *equals = strchr (word, '=');
    if (!equals)
        return err_set (err, ERR_INVALID, "topology line %u: '%.40s' is no NAME=value", line, word);
    *equals++ = '\0';
    if (strcasecmp (word, "SwitchName") == 0) {
        uint32_t n;
        if (name_check ("switch", equals, err) != 0)
            return err_prefix (err, "topology line %u", line);
        n = strtab_intern (r->place->sw, equals);
        if (n >= TOPOLOGY_SWITCHES_MAX)
            return err_set (err, ERR_LIMIT, "topology: more than %d switches",
                            TOPOLOGY_SWITCHES_MAX);
        *at = &r->sw[n];
        if ((*at)->said)
            return err_set (err, ERR_INVALID, "topology line %u: switch %.40s is there already",
                            line, equals);
        (*at)->said = true;
        (*at)->line = line;
        return 0;
    }
    if (strcasecmp (word, "LinkSpeed") == 0)
        return 0; /* Slurm has it and does not use it either */
    if (!*at)
        return err_set (err, ERR_INVALID, "topology line %u: it begins with SwitchName=", line);
    if (strcasecmp (word, "Nodes") == 0)
        (*at)->nodes = equals;
    else if (strcasecmp (word, "Switches") == 0)
        (*at)->switches = equals;
    else
        return err_set (err, ERR_INVALID,
                        "topology line %u: '%.40s' is not SwitchName, Nodes or Switches", line,
                        word);
    return 0;
}

static int lines_read (struct reader *r, char *text, struct err *err)
{
    uint32_t number = 0;
    for (char *line = text, *next; line; line = next) {
        struct one_switch *at = NULL;
        char *rest = NULL;
        int rc = 0;
        next = strchr (line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        line[strcspn (line, "#")] = '\0';
        for (char *word = strtok_r (line, " \t\r", &rest); rc == 0 && word;
             word = strtok_r (NULL, " \t\r", &rest))
            rc = word_take (r, &at, word, number, err);
        if (rc != 0)
            return rc;
        if (at && !at->nodes == !at->switches)
            return err_set (err, ERR_INVALID, "topology line %u: Nodes= or Switches=, one of them",
                            number);
    }
    return 0;
}

static void nodes_add (struct reader *r, struct one_switch *s, const struct node_id *node,
                       uint32_t count)
{
    struct node_id *all = arena_array (r->arena, s->node_count + count + 1, sizeof *all);
    if (s->node_count)
        memcpy (all, s->node, s->node_count * sizeof *all);
    if (count)
        memcpy (all + s->node_count, node, count * sizeof *all);
    s->node = all;
    s->node_count += count;
}

static int resolve (struct reader *r, struct one_switch *s, struct err *err)
{
    const char **name;
    uint32_t count;
    if (s->done)
        return 0;
    if (s->doing)
        return err_set (err, ERR_INVALID, "topology line %u: the switch is above itself", s->line);
    s->doing = true;
    int rc = hostlist_expand (s->nodes ? s->nodes : s->switches, r->arena, &name, &count, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct node_id id;
        uint32_t n = strtab_find (r->place->sw, name[i]);
        if (s->nodes && !r->place->node_find (r->place->self, name[i], &id)) {
            rc = err_set (err, ERR_NOT_FOUND, "topology line %u: there is no node %.60s", s->line,
                          name[i]);
        } else if (s->nodes) {
            nodes_add (r, s, &id, 1);
        } else if (n == STRTAB_NONE || !r->sw[n].said) {
            rc = err_set (err, ERR_NOT_FOUND, "topology line %u: there is no switch %.60s", s->line,
                          name[i]);
        } else {
            rc = resolve (r, &r->sw[n], err);
            if (r->sw[n].level >= s->level)
                s->level = r->sw[n].level + 1;
            if (rc == 0)
                nodes_add (r, s, r->sw[n].node, r->sw[n].node_count);
        }
    }
    s->done = true;
    return rc;
}

int topology_apply (struct place *p, const char *text, time_us now, struct err *err)
{
    struct reader r = {.place = p, .arena = arena_create (0)};
    int rc = 0;
    r.sw = arena_array (r.arena, TOPOLOGY_SWITCHES_MAX, sizeof *r.sw);
    if (text)
        rc = lines_read (&r, arena_strdup (r.arena, text), err);
    r.count = strtab_count (p->sw);
    struct switch_spec *list = arena_array (r.arena, r.count + 1, sizeof *list);
    for (uint32_t i = 0; rc == 0 && i < r.count; i++) {
        if (r.sw[i].said)
            rc = resolve (&r, &r.sw[i], err);
        list[i] = (struct switch_spec){r.sw[i].level, r.sw[i].node_count, r.sw[i].node};
    }
    if (rc == 0)
        rc = cluster_switches_set (p->cluster, list, r.count, now, err);
    arena_destroy (r.arena);
    return rc;
}
