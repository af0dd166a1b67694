/* stageoption: parses --stage-in and --stage-out into transfers, and puts an array's index into
 * them. jobspec calls it. No file is opened and no URL asked: that is the site's part. */
#include "proto/cli/stageoption.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/quantity.h"
#include "proto/job/stagespec.h"

typedef Nui__Common__V1__Transfer transfer;

static transfer *transfer_new (struct arena *arena)
{
    transfer *t = arena_new (arena, transfer);
    nui__common__v1__transfer__init (t);
    return t;
}

static int set_sha256 (transfer *t, const char *hex, struct arena *arena, struct err *err)
{
    t->sha256.data = arena_alloc (arena, STAGE_SHA256_LEN);
    t->sha256.len = STAGE_SHA256_LEN;
    if (stage_checksum_parse (arena_printf (arena, "sha256:%s", hex), t->sha256.data, err) < 0)
        return err_prefix (err, "--stage-in");
    return 0;
}

/* "1500", "20M": K, M, G and T of 1024. */
static int set_bytes (transfer *t, char *text, struct err *err)
{
    static const char suffix[] = "KMGT";
    size_t len = strlen (text);
    const char *s = len ? strchr (suffix, text[len - 1]) : NULL;
    unsigned shift = 0;
    uint64_t n;
    if (s && *s) {
        shift = 10 * (unsigned)(s - suffix + 1);
        text[len - 1] = '\0';
    }
    if (uint_parse (text, "bytes", 0, (uint64_t)INT64_MAX >> shift, &n, err) < 0) {
        err->code = ERR_INVALID;
        return err_prefix (err, "--stage-in");
    }
    t->bytes = (int64_t)(n << shift);
    return 0;
}

bool stageoption_piece (const char *key, size_t len)
{
    return (len == 6 && strncmp (key, "sha256", len) == 0) ||
           (len == 5 && strncmp (key, "bytes", len) == 0);
}

/* Takes the last ",KEY=value" off; NULL: there is none. */
static char *piece_take (char *text, size_t *key_len_out)
{
    char *comma = strrchr (text, ',');
    size_t len = comma ? strcspn (comma + 1, "=") : 0;
    if (!comma || comma[1 + len] != '=' || !stageoption_piece (comma + 1, len))
        return NULL;
    *comma = '\0';
    *key_len_out = len;
    return comma + 1;
}

transfer *stageoption_in (const char *text, struct arena *arena, struct err *err)
{
    transfer *t = transfer_new (arena);
    char *copy = arena_strdup (arena, text), *piece, *equals;
    size_t len;
    while ((piece = piece_take (copy, &len))) {
        int rc = len == 6 ? set_sha256 (t, piece + len + 1, arena, err)
                          : set_bytes (t, piece + len + 1, err);
        if (rc < 0)
            return NULL;
    }
    equals = strrchr (copy, '='); /* a URL may have some */
    if (!equals || equals == copy || !equals[1]) {
        err_set (err, ERR_INVALID, "--stage-in '%.80s': wanted URL=PATH[,sha256=HEX][,bytes=SIZE]",
                 text);
        return NULL;
    }
    *equals = '\0';
    t->url = copy;
    t->path = equals + 1;
    return t;
}

transfer *stageoption_out (const char *text, struct arena *arena, struct err *err)
{
    static const char always[] = ",always";
    transfer *t = transfer_new (arena);
    char *copy = arena_strdup (arena, text), *equals;
    size_t len = strlen (copy);
    if (len > sizeof always && strcmp (copy + len - (sizeof always - 1), always) == 0) {
        copy[len - (sizeof always - 1)] = '\0';
        t->always = true;
    }
    equals = strchr (copy, '=');
    if (!equals || equals == copy || !equals[1]) {
        err_set (err, ERR_INVALID, "--stage-out '%.80s': wanted PATH=URL[,always]", text);
        return NULL;
    }
    *equals = '\0';
    t->path = copy;
    t->url = equals + 1;
    return t;
}

static char *index_put (const char *text, uint32_t index, struct arena *arena)
{
    char *put = stage_index_put (text, index);
    char *out = arena_strdup (arena, put);
    free (put);
    return out;
}

static transfer **list_index (transfer **list, size_t count, uint32_t index, struct arena *arena)
{
    transfer **out = arena_array (arena, count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = arena_memdup (arena, list[i], sizeof *list[i]);
        out[i]->url = index_put (list[i]->url, index, arena);
        out[i]->path = index_put (list[i]->path, index, arena);
    }
    return out;
}

void stageoption_index (Nui__Common__V1__Component *c, uint32_t index, struct arena *arena)
{
    c->stage_in = list_index (c->stage_in, c->n_stage_in, index, arena);
    c->stage_out = list_index (c->stage_out, c->n_stage_out, index, arena);
}
