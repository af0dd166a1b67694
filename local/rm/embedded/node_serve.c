/* node_serve: the methods of nui.node.v1. Only the site of the configuration is answered; who watches is told of every run
 * that is here, then of what changes. Decides nothing. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/embedded/node_i.h"
#include "local/rm/embedded/runfiles.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

enum { WATCHERS_MAX = 16 };

struct node_watcher {
    struct node *node;
    struct rpccall *call;
    struct node_watcher *next;
};

/* --- what is told ----------------------------------------------------------------------------- */

static void watchers_tell (struct node *node, const Nui__Node__V1__WatchEvent *event)
{
    for (struct node_watcher *w = node->watchers; w; w = w->next)
        rpccall_send (w->call, &event->base);
}

static void run_state_fill (const struct node_run *run, Nui__Node__V1__Run *name,
                            Nui__Node__V1__RunState *out)
{
    nui__node__v1__run__init (name);
    name->job_id = (char *)run->job_id;
    name->incarnation = run->incarnation;
    name->mark = (char *)run->mark;
    nui__node__v1__run_state__init (out);
    out->run = name;
    out->started = run->status.started;
    out->start_us = run->status.start;
    out->ended = run->status.ended;
    out->end_us = run->status.end_at;
    out->how = (char *)(run->status.ended ? rm_end_name (run->status.end) : "");
    out->exit_code = run->status.exit_code;
    out->cpu_known = run->status.cpu_known;
    out->cpu_us = run->status.cpu_time;
    out->text = (char *)run->status.text;
}

static void run_event_fill (const struct node_run *run, Nui__Node__V1__Run *name,
                            Nui__Node__V1__RunState *state, Nui__Node__V1__WatchEvent *out)
{
    run_state_fill (run, name, state);
    nui__node__v1__watch_event__init (out);
    out->run = state;
}

void node_tell_run (struct node *node, const struct node_run *run)
{
    Nui__Node__V1__Run name;
    Nui__Node__V1__RunState state;
    Nui__Node__V1__WatchEvent event;
    run_event_fill (run, &name, &state, &event);
    watchers_tell (node, &event);
}

static void health_event_fill (const struct node *node, Nui__Node__V1__Health *health,
                               Nui__Node__V1__WatchEvent *out)
{
    const char *why = health_why (node->health);
    nui__node__v1__health__init (health);
    nui__node__v1__watch_event__init (out);
    health->against = (char *)(why ? why : "");
    out->health = health;
}

void node_tell_health (void *arg)
{
    Nui__Node__V1__Health health;
    Nui__Node__V1__WatchEvent event;
    health_event_fill (arg, &health, &event);
    watchers_tell (arg, &event);
}

/* --- who watches ------------------------------------------------------------------------------ */

static void watcher_end (struct node_watcher *w, enum rpc_status status, const char *why)
{
    struct node_watcher **at = &w->node->watchers;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    rpccall_finish (w->call, status, why);
    free (w);
}

static void on_watcher_gone (void *arg)
{
    watcher_end (arg, RPC_CANCELLED, NULL);
}

/* Whether the caller is our site; else it is told so. */
static bool site_calls (struct node *node, struct rpccall *call)
{
    const struct principal *peer = rpccall_peer (call);
    if (peer->kind == PRINCIPAL_SITE && strcmp (peer->name, node->settings->site) == 0)
        return true;
    struct err err = {0};
    err_set (&err, ERR_DENIED, "this host runs jobs for site %s, not for %s", node->settings->site,
             peer->name);
    rpccall_fail (call, &err);
    return false;
}

static void on_watch (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct node *node = self;
    struct node_run *run, *next;
    (void)message;
    if (!site_calls (node, call))
        return;
    uint32_t count = 0;
    for (struct node_watcher *w = node->watchers; w; w = w->next)
        count++;
    if (count >= WATCHERS_MAX) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "too many watch already");
        return;
    }
    struct node_watcher *w = mem_zero (1, sizeof *w);
    *w = (struct node_watcher){.node = node, .call = call, .next = node->watchers};
    HASH_ITER (hh, node->runs, run, next) {
        Nui__Node__V1__Run name;
        Nui__Node__V1__RunState state;
        Nui__Node__V1__WatchEvent event;
        run_event_fill (run, &name, &state, &event);
        if (!run->taken)
            rpccall_send (call, &event.base);
    }
    Nui__Node__V1__WatchEvent all, fit;
    Nui__Node__V1__Health health;
    health_event_fill (node, &health, &fit);
    rpccall_send (call, &fit.base);
    nui__node__v1__watch_event__init (&all);
    all.all = true;
    node->watchers = w;
    rpccall_on_cancel (call, on_watcher_gone, w);
    rpccall_send (call, &all.base);
}

/* --- the other methods ------------------------------------------------------------------------ */

static void on_put (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Node__V1__PutReply reply = NUI__NODE__V1__PUT_REPLY__INIT;
    struct err err = {0};
    if (site_calls (self, call))
        rpccall_answer (call, node_run_put (self, (const Nui__Node__V1__PutRequest *)message, &err),
                        &reply.base, &err);
}

static void on_start (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Node__V1__StartRequest *request = (const Nui__Node__V1__StartRequest *)message;
    Nui__Node__V1__StartReply reply = NUI__NODE__V1__START_REPLY__INIT;
    struct err err = {0};
    if (!site_calls (self, call))
        return;
    int rc = node_run_start (self, request, &err);
    const struct node_run *run = node_run_find (self, request->run, NULL);
    /* The request goes with the call. The run may have been here, and have ended. */
    rpccall_answer (call, rc, &reply.base, &err);
    if (run)
        node_tell_run (self, run);
}

static int act_do (struct node *node, const Nui__Node__V1__ActRequest *request, struct err *err)
{
    const struct rm_ops *ops = node->rm.ops;
    void *self = node->rm.self;
    struct node_run *run = node_run_find (node, request->run, err);
    if (!run || run->status.ended)
        return run ? 0 : err->code;
    switch (request->act) {
    case NUI__NODE__V1__ACT__ACT_CANCEL:
        return ops->cancel (self, run->job_id, run->incarnation, err);
    case NUI__NODE__V1__ACT__ACT_SUSPEND:
        return ops->suspend (self, run->job_id, run->incarnation, true, err);
    case NUI__NODE__V1__ACT__ACT_RESUME:
        return ops->suspend (self, run->job_id, run->incarnation, false, err);
    default:
        return ops->signal (self, run->job_id, run->incarnation, request->signal, err);
    }
}

static void on_act (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Node__V1__ActReply reply = NUI__NODE__V1__ACT_REPLY__INIT;
    struct err err = {0};
    if (site_calls (self, call))
        rpccall_answer (call, act_do (self, (const Nui__Node__V1__ActRequest *)message, &err),
                        &reply.base, &err);
}

static void on_used (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct node *node = self;
    Nui__Node__V1__UsedReply reply = NUI__NODE__V1__USED_REPLY__INIT;
    struct rm_used used = {0};
    struct rm_limits limits = {0};
    struct err err = {0};
    if (!site_calls (node, call))
        return;
    struct node_run *run =
        node_run_find (node, ((const Nui__Node__V1__UsedRequest *)message)->run, &err);
    int rc = run ? node->rm.ops->used (node->rm.self, run->job_id, run->incarnation, &used, &err)
                 : err.code;
    if (rc == 0)
        rc = node->rm.ops->limits (node->rm.self, run->job_id, run->incarnation, &limits, &err);
    reply.cpu_us = used.cpu_time;
    reply.memory_mb = used.memory_mb;
    reply.memory_kept = limits.memory;
    reply.processors_kept = limits.processors;
    reply.cpu_time_kept = limits.cpu_time;
    reply.processes_kept = limits.processes;
    rpccall_answer (call, rc, &reply.base, &err);
}

static int work_open (struct node *node, const Nui__Node__V1__Run *name, int *dir_out,
                      struct err *err)
{
    struct node_run *run = node_run_find (node, name, err);
    int dir = run ? node_run_dir (node, run, err) : -1;
    int work =
        dir >= 0 ? openat (dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (dir >= 0 && work < 0)
        err_set (err, ERR_IO, "working directory of job %s: %s", run->key, strerror (errno));
    if (dir_out && work >= 0)
        *dir_out = dir;
    else if (dir >= 0)
        close (dir);
    return work;
}

/* What has not been touched since the launch came from the site. */
static void on_files (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Node__V1__FilesReply reply = NUI__NODE__V1__FILES_REPLY__INIT;
    struct runfiles files = {0};
    struct stat st;
    struct err err = {0};
    int dir = -1;
    if (!site_calls (self, call))
        return;
    int work = work_open (self, ((const Nui__Node__V1__FilesRequest *)message)->run, &dir, &err);
    bool launched = work >= 0 && fstatat (dir, "launched", &st, AT_SYMLINK_NOFOLLOW) == 0;
    int rc =
        work < 0 ? err.code : runfiles_list (work, launched ? &st.st_ctim : NULL, &files, &err);
    Nui__Node__V1__File *item = mem_zero (files.count + 1, sizeof *item);
    reply.file = mem_zero (files.count + 1, sizeof (Nui__Node__V1__File *));
    for (uint32_t i = 0; rc == 0 && i < files.count; i++) {
        nui__node__v1__file__init (&item[i]);
        text_mend (files.file[i].path, strlen (files.file[i].path));
        item[i].path = files.file[i].path;
        item[i].kind = (Nui__Node__V1__FileKind)files.file[i].kind;
        item[i].mode = files.file[i].mode;
        item[i].size = files.file[i].size;
        if (files.file[i].target) {
            text_mend (files.file[i].target, strlen (files.file[i].target));
            item[i].target = files.file[i].target;
        }
        reply.file[reply.n_file++] = &item[i];
    }
    rpccall_answer (call, rc, &reply.base, &err);
    free (reply.file);
    free (item);
    runfiles_free (&files);
    if (work >= 0) {
        close (work);
        close (dir);
    }
}

static void on_get (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Node__V1__GetRequest *request = (const Nui__Node__V1__GetRequest *)message;
    Nui__Node__V1__GetReply reply = NUI__NODE__V1__GET_REPLY__INIT;
    struct err err = {0};
    if (!site_calls (self, call))
        return;
    int work = work_open (self, request->run, NULL, &err);
    reply.data.data = mem_alloc (RUNFILES_PIECE);
    int rc = work < 0 ? err.code
                      : runfiles_read (work, request->path, request->offset, reply.data.data,
                                       &reply.data.len, &err);
    rpccall_answer (call, rc, &reply.base, &err);
    free (reply.data.data);
    if (work >= 0)
        close (work);
}

static void on_taken (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Node__V1__TakenReply reply = NUI__NODE__V1__TAKEN_REPLY__INIT;
    struct err err = {0};
    if (site_calls (self, call))
        rpccall_answer (
            call, node_run_taken (self, ((const Nui__Node__V1__TakenRequest *)message)->run, &err),
            &reply.base, &err);
}

#define SITE RPC_ALLOW (PRINCIPAL_SITE)
static const struct rpc_method methods[] = {
    {"Put", SITE, false, 2 << 20, on_put},
    {"Start", SITE, false, 2 << 20, on_start},
    {"Act", SITE, false, 0, on_act},
    {"Watch", SITE, true, 0, on_watch},
    {"Used", SITE, false, 0, on_used},
    {"Files", SITE, false, 0, on_files},
    {"Get", SITE, false, 0, on_get},
    {"Taken", SITE, false, 0, on_taken},
    {NULL, 0, false, 0, NULL},
};

int node_serve_begin (struct node *node, struct rpcserver *server, struct err *err)
{
    return rpcserver_add_service (server, &nui__node__v1__node__descriptor, methods, node, err);
}

void node_serve_draining (struct node *node)
{
    while (node->watchers)
        watcher_end (node->watchers, RPC_UNAVAILABLE, "nui-node ends");
}
