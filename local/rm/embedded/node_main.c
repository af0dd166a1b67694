/* nui-node: runs a site's jobs on another of its hosts, for the nui-local that has NODECFG[x] AGENT. See nui-node(8). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/embedded/node_i.h"
#include "local/rm/program_path.h"
#include "proto/rpc/daemon.h"

struct program {
    struct node node;
    char supervise[4096], jobs[4096];
};

static const struct conf_param node_params[] = {
    {.name = "SITE",
     .type = CONF_STRING,
     .offset = offsetof (struct node_settings, site),
     .flags = CONF_F_REQUIRED,
     .help = "the site whose jobs this host runs"},
    {.name = "JOBDIR",
     .type = CONF_PATH,
     .offset = offsetof (struct node_settings, job_dir),
     .help = "where the jobs' directories are; STATEDIR/jobs where it is not said"},
    {.name = "SUPERVISE",
     .type = CONF_PATH,
     .offset = offsetof (struct node_settings, supervise),
     .help = "nui-supervise, if it is not beside this program"},
    {.name = "CGROUPS",
     .type = CONF_BOOL,
     .offset = offsetof (struct node_settings, cgroups),
     .initial = "TRUE",
     .help = "keeps jobs within their limits by cgroup v2, where the machine allows"},
    {.name = "NODEHEALTHPROGRAM",
     .type = CONF_PATH,
     .offset = offsetof (struct node_settings, health.program),
     .help = "says whether the host is fit for jobs"},
    {.name = "NODEHEALTHINTERVAL",
     .type = CONF_DURATION,
     .offset = offsetof (struct node_settings, health.every),
     .min = US_PER_S,
     .max = 86400 * US_PER_S,
     .initial = "00:05:00",
     .help = "how often NODEHEALTHPROGRAM is run"},
    {.name = NULL},
};

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    struct node_settings *settings = calloc (1, sizeof *settings);
    (void)self;
    if (!settings)
        return err_set (err, ERR_NOMEM, "no memory for the configuration");
    int rc = conf_table_read (conf, node_params, settings, err);
    if (rc == 0)
        rc = name_check ("SITE", settings->site ? settings->site : "", err);
    if (rc == 0 && settings->health.program)
        rc = conf_program_check ("NODEHEALTHPROGRAM", settings->health.program, err);
    if (rc == 0)
        *settings_out = settings;
    else
        free (settings);
    return rc;
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    free (settings);
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct program *program = self;
    struct node *node = &program->node;
    struct node_settings *s = settings;
    *node = (struct node){
        .base = daemon_base (daemon), .log = daemon_log (daemon), .settings = s, .dir = -1};
    if (!s->supervise) {
        program_path ("nui-supervise", program->supervise, sizeof program->supervise);
        s->supervise = program->supervise;
    }
    if (!s->job_dir) {
        snprintf (program->jobs, sizeof program->jobs, "%s/jobs", daemon_state_dir (daemon));
        s->job_dir = program->jobs;
    }
    int rc = node_runs_open (node, err);
    if (rc == 0)
        rc = node_serve_begin (node, daemon_server (daemon), err);
    if (rc != 0)
        node_runs_close (node);
    else
        node->health = health_begin (node->base, node->log, &s->health, node_tell_health, node);
    return rc;
}

static void draining (void *self)
{
    node_serve_draining (&((struct program *)self)->node);
}

static void stop (void *self)
{
    struct node *node = &((struct program *)self)->node;
    node_serve_draining (node);
    health_end (node->health);
    node_runs_close (node);
}

static const struct daemon_ops ops = {
    .program = "nui-node",
    .config_default = "/etc/nui/nui-node.cfg",
    .summary = "runs a site's jobs on another of its hosts",
    .kind = PRINCIPAL_NODE,
    .configure = configure,
    .settings_free = settings_free,
    .start = start,
    .draining = draining,
    .stop = stop,
};

int main (int argc, char **argv)
{
    struct program program = {0};
    return daemon_main (&ops, &program, argc, argv);
}
