/* native_kind: what RMCFG TYPE=NATIVE and TYPE=WIKI need. rm_kind.c has it in its table. */
#include "local/rm/native/native_url.h"

static int check (const struct rm_options *options, struct err *err)
{
    struct arena *arena = arena_create (0);
    int rc = 0;
    for (enum rm_call call = 0; rc == 0 && call < RM_CALLS; call++) {
        struct native_url url;
        rc = native_url_of (options, call, arena, &url, err);
        if (rc == 0 && url.scheme == NATIVE_NOWHERE && call <= RM_CALL_WORKLOADQUERY)
            rc = err_set (err, ERR_INVALID,
                          "RMCFG: TYPE=NATIVE needs %s (or ADAPTER), where its %s are asked for",
                          native_url_name (call), call == RM_CALL_CLUSTERQUERY ? "nodes" : "jobs");
    }
    arena_destroy (arena);
    return rc;
}

const struct rm_kind rm_native_kind = {
    .name = "NATIVE",
    .does = "speaks to any other through programs",
    .has_nodes = true,
    .dedicates = true, /* what an adapter measures is as old as its answer */
    .check = check,
};

static int wiki_check (const struct rm_options *options, struct err *err)
{
    return options->server
               ? 0
               : err_set (err, ERR_INVALID,
                          "RMCFG: TYPE=WIKI needs SERVER, 127.0.0.1:7321 or unix:/path");
}

const struct rm_kind rm_wiki_kind = {
    .name = "WIKI",
    .does = "by the Wiki interface",
    .has_nodes = true,
    .dedicates = true,
    .check = wiki_check,
};
