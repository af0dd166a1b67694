/* nui-gate: where programs come in. Wiring only; see meta/gate/README.md. */
#include "meta/gate/config.h"
#include "meta/gate/program.h"
#include "proto/rpc/daemon.h"

struct program {
    struct gate *gate;
};

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    (void)self;
    *settings_out = gate_config_read (conf, err);
    return *settings_out ? 0 : err->code;
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    gate_config_destroy (settings);
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct program *program = self;
    const struct gate_env env = {.base = daemon_base (daemon),
                                 .log = daemon_log (daemon),
                                 .id = daemon_tlsid (daemon),
                                 .grid = daemon_grid (daemon),
                                 .state_dir = daemon_state_dir (daemon)};
    program->gate = gate_open (&env, settings, err);
    return program->gate ? 0 : err->code;
}

static void metrics (void *self, struct metrics_page *page)
{
    gate_metrics (((struct program *)self)->gate, page);
}

static void stop (void *self)
{
    struct program *program = self;
    gate_close (program->gate);
    program->gate = NULL;
}

int main (int argc, char **argv)
{
    static const struct daemon_ops ops = {
        .program = "nui-gate",
        .config_default = "/etc/nui/nui-gate.cfg",
        .summary = "lets programs that speak REST use the grid, by their users' delegations",
        .kind = PRINCIPAL_GATE,
        .configure = configure,
        .settings_free = settings_free,
        .start = start,
        .metrics = metrics,
        .stop = stop,
    };
    struct program program = {0};
    daemon_files_raise ();
    return daemon_main (&ops, &program, argc, argv);
}
