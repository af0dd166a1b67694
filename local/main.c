/* nui-local: the local scheduler of one site. The only place that knows how its parts are wired. */
#include <stdlib.h>
#include <string.h>

#include "local/rm/adapters/from_adapter.h"
#include "local/rm/embedded/first_config.h"
#include "local/rm/slurm/from_slurm.h"
#include "local/svc/svc.h"
#include "proto/base/text.h"
#include "proto/rpc/daemon.h"

struct program {
    struct cred_names names; /* shared by every policy of this process */
    int mode;                /* --mode; -1: as the configuration says */
    struct svc *svc;
};

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    struct program *program = self;
    struct settings *settings;
    int rc = settings_read (conf, &program->names, program->mode, &settings, err);
    if (rc == 0)
        *settings_out = settings;
    return rc;
}

static int mode_set (void *self, const char *value, struct err *err)
{
    return server_mode_parse (value, &((struct program *)self)->mode, err);
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    settings_destroy (settings);
}

/* A cluster by itself: its users are the accounts of its machine, at SOCKET. */
static int alone (void *self, const void *settings, struct principal *out, struct err *err)
{
    const struct settings *s = settings;
    (void)self;
    if (s->meta_count > 0 || s->group_count > 0 || s->bank)
        return err_set (
            err, ERR_INVALID,
            "%s needs CA, CRL, CERT, KEY and GRID: others are spoken with by certificate",
            s->bank ? "BANK" : "META");
    for (uint32_t i = 0; i < s->nodes.node_count; i++)
        if (s->nodes.node[i].agent)
            return err_set (
                err, ERR_INVALID,
                "NODECFG[%.60s] AGENT needs CA, CRL, CERT, KEY, LISTEN and GRID: other hosts "
                "are spoken with by certificate",
                s->nodes.node[i].name);
    *out = (struct principal){.kind = PRINCIPAL_SITE, .grid = "local"};
    text_printf (out->name, sizeof out->name, "%s", s->site_name ? s->site_name : "local");
    return 0;
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct program *program = self;
    return svc_create (daemon, &program->names, settings, &program->svc, err);
}

static int reload (void *self, void *settings, struct err *err)
{
    struct program *program = self;
    return svc_reload (program->svc, settings, err);
}

static void metrics (void *self, struct metrics_page *page)
{
    svc_metrics (((struct program *)self)->svc, page);
}

static void draining (void *self)
{
    svc_draining (((struct program *)self)->svc);
}

static void stop (void *self)
{
    struct program *program = self;
    svc_destroy (program->svc);
    program->svc = NULL;
}

static const struct daemon_ops ops = {
    .checks_partial = true,
    .lenient_key = "MAUIFILE",
    .program = "nui-local",
    .config_default = "/etc/nui/nui-local.cfg",
    .summary = "the local scheduler of one site: queue, reservations, jobs and what they cost",
    .kind = PRINCIPAL_SITE,
    .option = "mode",
    .option_help = "NORMAL, TEST, INTERACTIVE or SIMULATION, whatever the file says",
    .set_option = mode_set,
    .alone = alone,
    .configure = configure,
    .settings_free = settings_free,
    .start = start,
    .reload = reload,
    .metrics = metrics,
    .draining = draining,
    .stop = stop,
};

int main (int argc, char **argv)
{
    struct program program = {.mode = -1};
    if (argc > 1 && strcmp (argv[1], "--from-slurm") == 0)
        return from_slurm_main (argc - 1, argv + 1);
    if (argc > 1 && strcmp (argv[1], "--from-gridengine") == 0)
        return from_adapter_main ("gridengine", argc - 1, argv + 1);
    if (argc > 1 && strcmp (argv[1], "--from-pbs") == 0)
        return from_adapter_main ("pbs", argc - 1, argv + 1);
    if (argc > 1 && strcmp (argv[1], "--init") == 0)
        return first_config_main (argc - 1, argv + 1);
    cred_names_init (&program.names);
    int code = daemon_main (&ops, &program, argc, argv);
    cred_names_free (&program.names);
    return code;
}
