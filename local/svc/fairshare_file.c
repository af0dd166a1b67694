#include "local/svc/fairshare_file.h"

#include <stdlib.h>
#include <string.h>

#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"

/* A job's end is seldom alone: what a whole second of ends changed is written once. */
static const duration_us put_gap = US_PER_S;

static int put (struct svc *svc, time_us now, struct err *err)
{
    struct fairshare_state state;
    struct strbuf b = STRBUF_INIT;
    struct arena *arena = arena_create (0);
    struct fairshare *fs = cluster_fairshare (svc->cluster);
    fairshare_advance (fs, now);
    fairshare_export (fs, arena, &state);
    strbuf_printf (&b, "%lld %lld %u\n", (long long)state.updated_at, (long long)state.interval,
                   state.depth);
    for (uint32_t i = 0; i < state.row_count; i++) {
        const struct fairshare_row *row = &state.row[i];
        bool total = row->kind == CRED_KINDS;
        strbuf_printf (&b, "%d %s", (int)row->kind,
                       total ? "-" : cred_name (svc->names, row->kind, row->id));
        for (uint32_t w = 0; w < state.depth; w++)
            strbuf_printf (&b, " %a", row->window[w]);
        strbuf_putc (&b, '\n');
    }
    int rc = local_store_blob_put (svc->store, "fairshare", b.data, b.len, err);
    strbuf_free (&b);
    arena_destroy (arena);
    if (rc == 0)
        svc->fairshare_put_at = clock_monotonic_us ();
    return rc;
}

int fairshare_file_put (struct svc *svc, struct err *err)
{
    if (svc->settings->policy->fs_policy == FS_NONE ||
        clock_monotonic_us () - svc->fairshare_put_at < put_gap)
        return 0;
    return put (svc, svc_now (svc), err);
}

void fairshare_file_save (struct svc *svc)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = put (svc, svc_now (svc), &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "fairshare_not_saved", "error=\"%s\"",
                   err.text);
}

static int row_parse (struct svc *svc, char *line, uint32_t depth, struct fairshare_row *row)
{
    char *save = NULL;
    char *kind = strtok_r (line, " ", &save);
    char *name = strtok_r (NULL, " ", &save);
    if (!kind || !name || atoi (kind) < 0 || atoi (kind) > CRED_KINDS)
        return -1;
    *row = (struct fairshare_row){.kind = (enum cred_kind)atoi (kind)};
    if (row->kind != CRED_KINDS)
        row->id = strtab_intern (svc->names->tab[row->kind], name);
    for (uint32_t w = 0; w < depth; w++) {
        char *value = strtok_r (NULL, " ", &save);
        if (!value)
            return -1;
        row->window[w] = strtod (value, NULL);
    }
    return 0;
}

void fairshare_file_load (struct svc *svc)
{
    void *bytes = NULL;
    size_t len = 0;
    struct err err = {0};
    long long updated = 0, interval = 0;
    unsigned depth = 0;
    char *save = NULL;
    if (local_store_blob_get (svc->store, "fairshare", &bytes, &len, &err) != 0)
        return; /* the first start */
    uint32_t lines = 0;
    for (size_t i = 0; i < len; i++)
        lines += ((char *)bytes)[i] == '\n';
    struct fairshare_row *rows = calloc (lines + 1, sizeof *rows);
    char *line = strtok_r (bytes, "\n", &save);
    struct fairshare_state state = {.row = rows};
    bool good = rows && line && sscanf (line, "%lld %lld %u", &updated, &interval, &depth) == 3 &&
                depth <= FS_DEPTH_MAX;
    while (good && (line = strtok_r (NULL, "\n", &save)))
        good = row_parse (svc, line, depth, &rows[state.row_count++]) == 0;
    state.updated_at = updated;
    state.interval = interval;
    state.depth = depth;
    if (good && fairshare_import (cluster_fairshare (svc->cluster), &state, &err) == 0)
        fairshare_advance (cluster_fairshare (svc->cluster), svc_now (svc));
    else
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "fairshare_unreadable", "error=\"%s\"",
                   err.text);
    free (rows);
    free (bytes);
}
