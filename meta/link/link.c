/* One client to one peer: who must be at the other end, how long a call may take, and who is told of its end. */
#include "meta/link/link.h"

#include <stdlib.h>
#include <string.h>

struct link {
    struct rpcclient *client;
    const ProtobufCServiceDescriptor *service;
    char *server;
};

static struct link *link_open (const struct link_env *env, enum principal_kind kind,
                               const char *name, const char *server,
                               const ProtobufCServiceDescriptor *service, struct err *err)
{
    struct rpcclient_config config = {
        .base = env->base,
        .id = env->id,
        .mend_text = true,
        .log = env->log,
        .target = server,
        .expect_kind = kind,
        .expect_name = name,
        .backoff_max = 2 * US_PER_S,
        .gate = env->gate,
    };
    struct link *link = calloc (1, sizeof *link);
    if (!link) {
        err_set (err, ERR_NOMEM, "no memory for a link to %s", server);
        return NULL;
    }
    link->service = service;
    link->server = strdup (server);
    link->client = rpcclient_create (&config, err);
    if (!link->client || !link->server) {
        link_destroy (link);
        return NULL;
    }
    return link;
}

struct link *link_to_site (const struct link_env *env, const char *name, const char *server,
                           struct err *err)
{
    return link_open (env, PRINCIPAL_SITE, name, server, &nui__local__v1__local__descriptor, err);
}

struct link *link_to_bank (const struct link_env *env, const char *server, struct err *err)
{
    return link_open (env, PRINCIPAL_BANK, NULL, server, &nui__bank__v1__bank__descriptor, err);
}

struct link *link_to_peer (const struct link_env *env, const char *name, const char *server,
                           struct err *err)
{
    return link_open (env, PRINCIPAL_META, name, server, &nui__meta__v1__peers__descriptor, err);
}

void link_destroy (struct link *link)
{
    if (!link)
        return;
    rpcclient_destroy (link->client);
    free (link->server);
    free (link);
}

const char *link_server (const struct link *link)
{
    return link->server;
}

void link_call (struct link *link, const char *method, const ProtobufCMessage *request,
                duration_us timeout, link_done_fn done, void *arg)
{
    struct rpccallout_config call = {
        .service = link->service,
        .method = method,
        .request = request,
        .timeout = timeout,
        .idempotent = true,
        .done = done,
        .arg = arg,
    };
    rpcclient_start (link->client, &call);
}
