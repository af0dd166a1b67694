/* nui-meta: the metascheduler of a grid. Wiring only; see meta/README.md. */
#include "meta/conf/config.h"
#include "meta/svc/metad.h"
#include "proto/rpc/daemon.h"

struct program {
    struct metad *metad;
};

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    (void)self;
    *settings_out = metad_config_read (conf, err);
    return *settings_out ? 0 : err->code;
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    metad_config_destroy (settings);
}

static void failed (void *arg, const struct err *why)
{
    daemon_stop (arg, why);
}

static int takes_work (void *arg, struct err *err)
{
    return daemon_takes_work (arg, err);
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct program *program = self;
    struct metad_env env = {
        .base = daemon_base (daemon),
        .log = daemon_log (daemon),
        .id = daemon_tlsid (daemon),
        .grid = daemon_grid (daemon),
        .state_dir = daemon_state_dir (daemon),
        .failed = failed,
        .takes_work = takes_work,
        .failed_arg = daemon,
    };
    program->metad = metad_create (&env, settings, err);
    if (!program->metad)
        return err->code;
    return metad_serve (program->metad, daemon_server (daemon), err);
}

static int reload (void *self, void *settings, struct err *err)
{
    return metad_reconfigure (((struct program *)self)->metad, settings, err);
}

static void metrics (void *self, struct metrics_page *page)
{
    metad_metrics (((struct program *)self)->metad, page);
}

static void draining (void *self)
{
    metad_drain (((struct program *)self)->metad);
}

static void stop (void *self)
{
    struct program *program = self;
    metad_destroy (program->metad);
    program->metad = NULL;
}

int main (int argc, char **argv)
{
    static const struct daemon_ops ops = {
        .program = "nui-meta",
        .config_default = "/etc/nui/nui-meta.cfg",
        .summary = "places the grid's jobs on its sites and co-allocates those that need several",
        .kind = PRINCIPAL_META,
        .configure = configure,
        .settings_free = settings_free,
        .start = start,
        .reload = reload,
        .metrics = metrics,
        .draining = draining,
        .stop = stop,
    };
    struct program program = {0};
    daemon_files_raise ();
    return daemon_main (&ops, &program, argc, argv);
}
