/* Any bytes as an answer of slurmrestd: its entries are taken, or refused with a sentence. In
 * pieces of any size it comes to the same. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "local/rm/slurm/slurm_i.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

struct taken {
    struct arena *arena;
    uint64_t digest;
    uint32_t count;
    struct slurm_split split;
    struct slurm_offers offers;
};

static void on_task (void *arg, uint32_t task)
{
    *(uint64_t *)arg += task;
}

static int job_take (struct taken *t, json_t *object, struct err *err)
{
    struct slurm_seen seen;
    uint64_t sum = 0;
    int rc = slurm_parse_job (object, "nui", t->arena, &seen, err);
    if (rc != 0)
        return rc;
    assert (*seen.native.rm_id && seen.state != SLURM_NONE && strlen (seen.word) > 0);
    assert (seen.native.start == 0 || seen.state != SLURM_PENDING);
    struct rm_status status = {0};
    slurm_end_of (seen.word, seen.exit_status, &status);
    assert (status.ended && status.exit_code >= 0 && status.exit_code < 256);
    assert (slurm_tasks_each (seen.tasks, 1000, on_task, &sum) <= 1000);
    t->digest = t->digest * 31 + rm_native_digest (&seen.native) + sum;
    return 0;
}

static int on_object (void *arg, const char *key, json_t *object, struct err *err)
{
    struct taken *t = arg;
    int64_t number;
    char text[64];
    char word[24];
    enum slurm_state state;
    t->count++;
    arena_reset (t->arena);
    if (strcmp (key, "paths") == 0) {
        slurm_offers_take (&t->offers, t->split.name, object);
        return 0;
    }
    if (strcmp (key, "states") == 0)
        return slurm_parse_state (object, "an entry", "state", word, &state, err);
    if (strcmp (key, "jobs") == 0)
        return job_take (t, object, err);
    if (strcmp (key, "nodes") == 0) {
        struct slurm_node *node = slurm_parse_node (object, "nui", NULL, err);
        if (!node)
            return err->code;
        assert (node->node.procs < INT32_MAX && node->threads > 0);
        slurm_node_free (node);
    }
    struct slurm slurm = {.partition = (char *)"nui", .resv_prefix = "nui-alpha-", .observe = true};
    int rc = slurm_on_partition (&slurm, key, object, err);
    if (rc == 0)
        rc = slurm_on_licence (&slurm, key, object, err);
    if (rc == 0)
        rc = slurm_resv_on_object (&slurm, key, object, err);
    slurm_resv_stop (&slurm);
    slurm_nodes_stop (&slurm);
    slurm_error_of (object, &number, text, sizeof text);
    return rc;
}

static int feed (const uint8_t *data, size_t size, size_t piece, struct taken *t)
{
    struct slurm_api api;
    struct err err = {0};
    int rc = 0;
    *t = (struct taken){.arena = arena_create (0)};
    slurm_split_init (&t->split);
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = slurm_split_feed (&t->split, (const char *)data + at,
                               size - at < piece ? size - at : piece, on_object, t, &err);
    assert (rc == 0 || (err.code == rc && strlen (err.text) > 10));
    if (slurm_offers_choose (&t->offers, &api, &err) == 0)
        assert (api.usable && api.number >= 37);
    slurm_split_free (&t->split);
    arena_destroy (t->arena);
    return rc;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct taken whole, parts;
    int rc = feed (data, size, size ? size : 1, &whole);
    assert (feed (data, size, 1 + size % 13, &parts) == rc);
    assert (whole.count == parts.count && whole.digest == parts.digest);
    struct strbuf b = STRBUF_INIT, text = STRBUF_INIT;
    strbuf_append (&text, data, size);
    slurm_gres (strbuf_text (&text), &b);
    strbuf_free (&text);
    strbuf_free (&b);
    return 0;
}
