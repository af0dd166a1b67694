/* Clients of sites, made when first needed: for output, which comes from where the job runs. The metascheduler says where a
 * site is; that it is that site its certificate says. */
#include "meta/gate/gate.h"

#include <stdlib.h>
#include <string.h>

struct gate_site {
    char name[PRINCIPAL_NAME_MAX], server[300];
    struct rpcclient *client;
    struct gate_site *next;
};

struct rpcclient *sites_client (struct gate *gate, const char *name, const char *server,
                                struct err *err)
{
    struct gate_site *site = gate->sites;
    while (site && strcmp (site->name, name) != 0)
        site = site->next;
    if (site && strcmp (site->server, server) == 0)
        return site->client;
    const struct rpcclient_config config = {.base = gate->base,
                                            .id = gate->id,
                                            .log = gate->log,
                                            .target = server,
                                            .expect_kind = PRINCIPAL_SITE,
                                            .expect_name = name,
                                            .mend_text = true};
    struct rpcclient *client =
        strlen (name) < sizeof site->name && strlen (server) < sizeof site->server
            ? rpcclient_create (&config, err)
            : (err_set (err, ERR_LIMIT, "the site's name or address is too long"), NULL);
    if (!client)
        return NULL;
    if (!site) {
        site = calloc (1, sizeof *site);
        if (!site)
            abort ();
        strcpy (site->name, name);
        site->next = gate->sites;
        gate->sites = site;
    }
    strcpy (site->server, server);
    rpcclient_destroy (site->client); /* it has moved: its calls end */
    site->client = client;
    return client;
}

void sites_close (struct gate *gate)
{
    while (gate->sites) {
        struct gate_site *site = gate->sites;
        gate->sites = site->next;
        rpcclient_destroy (site->client);
        free (site);
    }
}
