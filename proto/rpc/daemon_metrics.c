/* daemon_metrics: what a daemon tells of itself, kept for a second, and the two doors to it: the plain one of this machine
 * (METRICS), and the daemon's own port for whoever has a certificate of a daemon or an operator. daemon.c opens and closes
 * it. However often it is asked, the program is asked once a second, so that a scrape never walks what is live. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/metrics/door.h"
#include "proto/rpc/daemon_i.h"

struct daemon_metrics {
    struct daemon_metrics_config config;
    struct metrics_page page[METRICS_FORMS];
    duration_us made[METRICS_FORMS]; /* monotonic; 0: never */
    struct rpcserver_page at_server;
    struct metrics_door *door;
    time_us started;
    duration_us spent; /* processor time: on making pages */
};

static int64_t files_open (void)
{
    DIR *dir = opendir ("/proc/self/fd");
    int64_t n = -3; /* ".", "..", and the folder itself */
    if (!dir)
        return -1;
    while (readdir (dir))
        n++;
    closedir (dir);
    return n;
}

static int64_t memory_resident (void)
{
    long long pages = 0;
    FILE *f = fopen ("/proc/self/statm", "r");
    if (f && fscanf (f, "%*d %lld", &pages) != 1)
        pages = 0;
    if (f)
        fclose (f);
    return pages * sysconf (_SC_PAGESIZE);
}

/* Names that boards for any program know. */
static void process_metrics (const struct daemon_metrics *m, struct metrics_page *page)
{
    struct rusage used;
    if (getrusage (RUSAGE_SELF, &used) == 0)
        metrics_one_micro (page, "process_cpu_seconds", METRICS_COUNTER,
                           "Processor time of this daemon",
                           (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_S +
                               used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    metrics_one (page, "process_resident_memory_bytes", METRICS_GAUGE, "Memory of this daemon",
                 memory_resident ());
    metrics_one (page, "process_open_fds", METRICS_GAUGE, "Files and connections it has open",
                 files_open ());
    metrics_one_micro (page, "nui_metrics_cpu_seconds", METRICS_COUNTER,
                       "Processor time spent on making this page", m->spent);
    metrics_one_micro (page, "process_start_time_seconds", METRICS_GAUGE,
                       "When it began, since 1970", m->started);
}

static void common_metrics (const struct daemon_metrics *m, struct metrics_page *page)
{
    const struct daemon_metrics_config *c = &m->config;
    const struct principal *self = tlsid_self (c->id);
    time_us now = clock_now_us (), end = tlsid_cert_end (c->id), list = tlsid_crl_end (c->id);
    metrics_family (page, "nui_build", METRICS_INFO, "Which daemon this is");
    metrics_count (page, 1,
                   METRICS_LABELS ("program", c->ops->program, "version", NUI_VERSION, "grid",
                                   self->grid, "name", self->name));
    metrics_one_micro (page, "nui_cert_expiry_seconds", METRICS_GAUGE,
                       "Until this daemon's own certificate ends", end - now);
    if (list > 0)
        metrics_one_micro (page, "nui_crl_expiry_seconds", METRICS_GAUGE,
                           "Until the revocation list ends; without one in force nobody is served",
                           list - now);
    metrics_one (page, "nui_disk_full", METRICS_GAUGE,
                 "1 while STATEDIR is so full that no new work is taken", c->room->tight);
    rpcserver_metrics (c->server, page);
    process_metrics (m, page);
}

static duration_us processor_time (void)
{
    struct timespec t = {0};
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

static const char *text_of (void *arg, enum metrics_form form, size_t *len)
{
    struct daemon_metrics *m = arg;
    struct metrics_page *page = &m->page[form];
    duration_us now = clock_monotonic_us ();
    if (m->made[form] == 0 || now - m->made[form] >= US_PER_S) {
        duration_us begun = processor_time ();
        strbuf_clear (&page->text);
        page->form = form;
        common_metrics (m, page);
        if (m->config.ops->metrics)
            m->config.ops->metrics (m->config.self, page);
        metrics_end (page);
        m->made[form] = now;
        m->spent += processor_time () - begun;
    }
    *len = page->text.len;
    return strbuf_text (&page->text);
}

struct daemon_metrics *daemon_metrics_open (const struct daemon_metrics_config *config,
                                            struct err *err)
{
    struct daemon_metrics *m = calloc (1, sizeof *m);
    if (!m) {
        err_set (err, ERR_NOMEM, "metrics: no memory");
        return NULL;
    }
    m->config = *config;
    m->started = clock_now_us ();
    if (config->listen) {
        m->door = metrics_door_open (config->base, config->listen, text_of, m, err);
        if (!m->door) {
            free (m);
            return NULL;
        }
        log_event (config->log, LOG_LEVEL_INFO, "daemon", "metrics", "listen=%s port=%u",
                   config->listen, (unsigned)metrics_door_port (m->door));
    }
    m->at_server = (struct rpcserver_page){
        .path = "/metrics",
        .allow = RPC_ALLOW (PRINCIPAL_OPERATOR) | RPC_ALLOW (PRINCIPAL_SITE) |
                 RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_BANK),
        .text = text_of,
        .arg = m,
    };
    rpcserver_set_page (config->server, &m->at_server);
    return m;
}

void daemon_metrics_close (struct daemon_metrics *m)
{
    if (!m)
        return;
    rpcserver_set_page (m->config.server, NULL);
    metrics_door_close (m->door);
    for (int form = 0; form < METRICS_FORMS; form++)
        strbuf_free (&m->page[form].text);
    free (m);
}
