/* native_world: the resource manager that test_native_rm and test_native_hostile drive: programs, what they were asked, the events. */
#include "tests/unit/local_rm/native_world.h"
#include "tests/unit/tmpdir.h"

#include <assert.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static const char program[] = "#!/bin/sh\n"
                              "cd \"${0%/*}\" || exit 1\n"
                              "call=$1; shift\n"
                              "echo \"$call${*:+ $*}\" >> calls\n"
                              "[ -e \"do.$call\" ] && . \"./do.$call\"\n"
                              "case $call in\n"
                              "clusterquery) cat nodes ;;\n"
                              "workloadquery) cat jobs ;;\n"
                              "*) cat \"answer.$call\" 2>/dev/null || echo SC=0 RESPONSE=done ;;\n"
                              "esac\n";

void native_world_put (struct native_world *w, const char *name, const char *fmt, ...)
{
    char path[160], tmp[170];
    va_list ap;
    snprintf (path, sizeof path, "%s/%s", w->dir, name);
    snprintf (tmp, sizeof tmp, "%s.new", path);
    FILE *f = fopen (tmp, "w");
    assert (f);
    va_start (ap, fmt);
    vfprintf (f, fmt, ap);
    va_end (ap);
    fclose (f);
    chmod (tmp, 0755);
    int rc = rename (tmp, path);
    assert (rc == 0);
}

void native_world_clear (struct native_world *w, const char *name)
{
    char path[160];
    snprintf (path, sizeof path, "%s/%s", w->dir, name);
    unlink (path);
}

static unsigned lines_count (const char *path, long from, const char *words, bool begins)
{
    char line[4096];
    unsigned found = 0;
    FILE *f = fopen (path, "r");
    if (!f)
        return 0;
    fseek (f, from, SEEK_SET);
    while (fgets (line, sizeof line, f)) {
        const char *at = strstr (line, words);
        found += at && (!begins || at == line);
    }
    fclose (f);
    return found;
}

unsigned native_world_calls (struct native_world *w, const char *begins)
{
    char path[160];
    snprintf (path, sizeof path, "%s/calls", w->dir);
    return lines_count (path, 0, begins, true);
}

void native_world_mark (struct native_world *w)
{
    char path[160];
    struct stat st;
    snprintf (path, sizeof path, "%s/log", w->dir);
    w->log_from = stat (path, &st) == 0 ? st.st_size : 0;
}

unsigned native_world_said (struct native_world *w, const char *words)
{
    char path[160];
    snprintf (path, sizeof path, "%s/log", w->dir);
    return lines_count (path, w->log_from, words, false);
}

bool native_world_fresh (struct native_world *w)
{
    return w->rm.ops->fresh (w->rm.self);
}

static void natives_take (struct native_world *w, const struct rm_event *event)
{
    for (uint32_t i = 0; i < event->native_count; i++) {
        const struct rm_native *n = &event->native[i];
        size_t len = strlen (w->told);
        char id[80];
        w->natives++;
        w->last = *n;
        snprintf (w->told + len, sizeof w->told - len, " %s", n->rm_id);
        snprintf (id, sizeof id, "site.%s", n->rm_id);
        if (w->bind_native && !n->job_id) {
            int rc = w->rm.ops->bind (w->rm.self, n->rm_id, n->submit, id, 0, 0, NULL);
            assert (rc == 0);
        }
    }
}

static void on_event (void *arg, const struct rm_event *event)
{
    struct native_world *w = arg;
    w->reach += event->kind == RM_EVENT_REACH;
    w->nodes += event->kind == RM_EVENT_NODES;
    w->unknown += event->kind == RM_EVENT_UNKNOWN;
    if (event->kind == RM_EVENT_NATIVE)
        natives_take (w, event);
    if (event->kind == RM_EVENT_HANDED) {
        snprintf (w->handed, sizeof w->handed, "%s=%s", event->job_id, event->rm_id);
        w->handed_count++;
    }
    if (event->kind == RM_EVENT_STARTED) {
        w->started++;
        w->unasked = event->unasked;
        w->start = event->status->start;
        snprintf (w->placement, sizeof w->placement, "%s", event->placement);
    }
    if (event->kind == RM_EVENT_SUSPENDED) {
        w->suspensions++;
        w->suspended = event->suspended;
    }
    if (event->kind == RM_EVENT_ENDED) {
        w->ended++;
        w->end = *event->status;
        snprintf (w->end_job, sizeof w->end_job, "%s-%u", event->job_id, event->incarnation);
        if (event->status->end == RM_END_REQUEUED && w->bind_native) /* as the service does */
            w->rm.ops->bind (w->rm.self, event->job_id + strlen ("site."), event->submit,
                             event->job_id, event->incarnation + 1, 0, NULL);
    }
}

struct native_world *native_world_create (void)
{
    struct native_world *w = calloc (1, sizeof *w);
    struct err err = {0};
    char path[160];
    assert (w);
    snprintf (w->dir, sizeof w->dir, "%s/nui-test-native-XXXXXX", tmpdir ());
    char *made = mkdtemp (w->dir);
    assert (made && chmod (w->dir, 0711) == 0);
    snprintf (w->program, sizeof w->program, "%s/adapter", w->dir);
    snprintf (w->jobs, sizeof w->jobs, "%s/jobdir", w->dir);
    native_world_put (w, "adapter", "%s", program);
    native_world_put (w, "nodes", "SC=0 COUNT=2\nn1 STATE=Idle;CPROC=4\nn2 STATE=Idle;CPROC=4\n");
    native_world_put (w, "jobs", "SC=0 COUNT=0\n");
    native_world_put (w, "calls", "%s", "");
    chmod (w->dir, 0711);
    snprintf (path, sizeof path, "%s/calls", w->dir);
    chmod (path, 0666); /* also for who submits as another account */
    snprintf (path, sizeof path, "%s/log", w->dir);
    w->log = log_create (path, LOG_LEVEL_DEBUG, "test", &err);
    w->base = event_base_new ();
    assert (w->log && w->base);
    w->kind = &rm_native_kind;
    w->account = geteuid () == 0 ? "nobody" : getenv ("USER");
    w->options =
        (struct rm_options){.adapter = w->program, .poll = US_PER_S / 50, .patience = US_PER_S};
    return w;
}

void native_world_open (struct native_world *w)
{
    struct err err = {0};
    struct rm_config config = {.base = w->base,
                               .log = w->log,
                               .site = "site",
                               .job_dir = w->jobs,
                               .options = &w->options,
                               .observe = w->observe,
                               .since = w->since,
                               .on_event = on_event,
                               .arg = w};
    if (rm_open (w->kind, &config, &w->rm, &err) != 0) {
        fprintf (stderr, "%s\n", err.text);
        abort ();
    }
}

void native_world_close (struct native_world *w)
{
    if (w->rm.ops)
        w->rm.ops->destroy (w->rm.self);
    w->rm = (struct rm){0};
}

void native_world_destroy (struct native_world *w)
{
    char command[128];
    native_world_close (w);
    log_destroy (w->log);
    event_base_free (w->base);
    snprintf (command, sizeof command, "rm -rf %s", w->dir);
    int rc = system (command);
    assert (rc == 0);
    free (w);
}
