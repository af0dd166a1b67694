/* daemon_probe: the smallest daemon on the skeleton; logs what it is called with. */
#include <stdlib.h>

#include "proto/rpc/daemon.h"

struct settings {
    int64_t level;
};

struct probe {
    struct daemon *daemon;
    int64_t level;
};

static const struct conf_param params[] = {{.name = "PROBELEVEL",
                                            .type = CONF_INT,
                                            .offset = offsetof (struct settings, level),
                                            .min = 1,
                                            .max = 9,
                                            .initial = "1"},
                                           {.name = "SIMFLAGS", .type = CONF_UNSUPPORTED},
                                           {0}};

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    (void)self;
    struct settings *s = calloc (1, sizeof *s);
    int rc = conf_table_read (conf, params, s, err);
    if (rc < 0) {
        free (s);
        return rc;
    }
    *settings_out = s;
    return 0;
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    free (settings);
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct probe *p = self;
    p->daemon = daemon;
    p->level = ((struct settings *)settings)->level;
    if (p->level == 8)
        return err_set (err, ERR_CONFLICT, "level 8 never starts");
    log_event (daemon_log (daemon), LOG_LEVEL_INFO, "probe", "started", "name=%s grid=%s level=%d",
               daemon_name (daemon), daemon_grid (daemon), (int)p->level);
    if (p->level == 7) {
        struct err why = {0};
        err_set (&why, ERR_IO, "level 7 stops at once");
        daemon_stop (daemon, &why);
    }
    return 0;
}

static int reload (void *self, void *settings, struct err *err)
{
    struct probe *p = self;
    int64_t level = ((struct settings *)settings)->level;
    if (level == 9)
        return err_set (err, ERR_CONFLICT, "level 9 cannot be reached");
    log_event (daemon_log (p->daemon), LOG_LEVEL_INFO, "probe", "reloaded", "from=%d to=%d",
               (int)p->level, (int)level);
    p->level = level;
    return 0;
}

static void stop (void *self)
{
    struct probe *p = self;
    log_event (daemon_log (p->daemon), LOG_LEVEL_INFO, "probe", "stopped", "level=%d",
               (int)p->level);
}

int main (int argc, char **argv)
{
    const struct daemon_ops ops = {.program = "daemon-probe",
                                   .config_default = "/nonexistent/probe.cfg",
                                   .summary = "a test of the skeleton",
                                   .kind = getenv ("PROBE_META") ? PRINCIPAL_META : PRINCIPAL_SITE,
                                   .configure = configure,
                                   .settings_free = settings_free,
                                   .start = start,
                                   .reload = reload,
                                   .stop = stop};
    struct probe probe = {0};
    return daemon_main (&ops, &probe, argc, argv);
}
