/* The gate as a whole: opened, measured and closed here, in the order that its parts need. main.c calls. */
#include "meta/gate/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/connshare.h"

static struct rpcclient *client_to (struct gate *gate, const char *target, enum principal_kind kind,
                                    struct err *err)
{
    const struct rpcclient_config config = {.base = gate->base,
                                            .id = gate->id,
                                            .log = gate->log,
                                            .target = target,
                                            .expect_kind = kind,
                                            .mend_text = true};
    return rpcclient_create (&config, err);
}

static int clients_open (struct gate *gate, struct err *err)
{
    for (uint32_t i = 0; i < gate->config->meta_count; i++)
        if (!(gate->meta[i] = client_to (gate, gate->config->meta[i], PRINCIPAL_META, err)))
            return err->code;
    gate->bank = client_to (gate, gate->config->bank, PRINCIPAL_BANK, err);
    return gate->bank ? 0 : err->code;
}

static int doors_open (struct gate *gate, struct err *err)
{
    const char *listen[] = {gate->config->http, gate->config->https};
    for (int i = 0; i < 2; i++) {
        if (!listen[i])
            continue;
        gate->door[i] = door_open (gate, listen[i], i == 1, err);
        if (!gate->door[i])
            return err->code;
        log_event (gate->log, LOG_LEVEL_INFO, "gate", "listening", "scheme=%s port=%u",
                   i ? "https" : "http", door_port (gate->door[i]));
    }
    return 0;
}

static char *document (const struct gate *gate)
{
    json_t *json = openapi_make (gate);
    char *text = json ? json_dumps (json, JSON_COMPACT) : NULL;
    json_decref (json);
    if (!text)
        abort ();
    return text;
}

struct gate *gate_open (const struct gate_env *env, const struct gate_config *config,
                        struct err *err)
{
    char path[4096];
    struct gate *gate = calloc (1, sizeof *gate);
    if (!gate)
        abort ();
    gate->base = env->base;
    gate->log = env->log;
    gate->id = env->id;
    gate->grid = env->grid;
    gate->name = tlsid_self (env->id)->name;
    gate->config = config;
    gate->find = route_find;
    gate->started = clock_now_us ();
    gate->tokens = tokens_create (gate->id);
    gate->watches = watches_create (gate);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.calls_per_s = (uint32_t)config->requests_per_s;
    gate->shares = connshare_create (&limits);
    gate->openapi = document (gate);
    snprintf (path, sizeof path, "%s/gate.sqlite", env->state_dir);
    gate->numbers = numbers_open (path, err);
    if (!gate->numbers || clients_open (gate, err) < 0 || doors_open (gate, err) < 0) {
        gate_close (gate);
        return NULL;
    }
    return gate;
}

void gate_close (struct gate *gate)
{
    struct ask *ask, *next;
    if (!gate)
        return;
    gate->stopping = true;
    watches_destroy (gate->watches);
    for (uint32_t i = 0; i < GATE_METAS_MAX; i++)
        rpcclient_destroy (gate->meta[i]);
    rpcclient_destroy (gate->bank);
    sites_close (gate);
    for (ask = gate->asks; ask; ask = next) {
        next = ask->next;
        if (ask->suspended && !ask->done)
            ask_problem (ask, MHD_HTTP_SERVICE_UNAVAILABLE, "the gate is being stopped");
    }
    door_turn_all (gate);
    door_close (gate->door[0]);
    door_close (gate->door[1]);
    tokens_destroy (gate->tokens);
    numbers_close (gate->numbers);
    connshare_destroy (gate->shares);
    if (gate->snapshot)
        nui__meta__v1__sites_reply__free_unpacked (gate->snapshot, NULL);
    free (gate->openapi);
    free (gate);
}

void gate_metrics (const struct gate *gate, struct metrics_page *page)
{
    metrics_family (page, "nui_gate_requests", METRICS_COUNTER, "Answered, by the status' class.");
    for (int i = 1; i < 6; i++) {
        char code[] = {(char)('0' + i), 'x', 'x', 0};
        metrics_count (page, (int64_t)gate->answered[i], METRICS_LABELS ("code", code));
    }
    metrics_family (page, "nui_gate_request_seconds", METRICS_HISTOGRAM,
                    "From the first byte to the answer, of streams to their beginning.");
    metrics_times (page, &gate->times, NULL);
    metrics_one (page, "nui_gate_streams", METRICS_GAUGE, "Streams of events that are open.",
                 watches_count (gate->watches));
    metrics_one (page, "nui_gate_connections", METRICS_GAUGE, "HTTP connections that are open.",
                 door_connections (gate));
}
