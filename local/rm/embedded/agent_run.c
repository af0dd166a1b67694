/* agent_run: one run on another host: its files go there, it begins there, its files and its end come back. What is durable
 * is the directory at home (`handed`: the host has it for good; `started`, `status`) and the one at the host; in between
 * everything may be said again. agent.c tells it what the host told. It must write `status` last: with that the job has ended. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/embedded/agent_i.h"
#include "local/rm/embedded/run_status.h"
#include "local/rm/supervise_file.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

enum { AGAIN_S = 2, CALL_S = 120, FILES_BYTES_MAX = 64 << 20 };

static const char handed_file[] = "handed";
static const char *const streams[] = {"stdout", "stderr"};

static void away_send (struct away *run);
static void away_fetch (struct away *run);

/* --- calls ------------------------------------------------------------------------------------ */

struct away_call {
    struct away *run; /* NULL: nobody waits for it */
    struct away_slot *slot;
    void (*done) (struct away *run, const struct rpc_result *result);
};

static void on_call_done (void *arg, const struct rpc_result *result)
{
    struct away_call *call = arg;
    if (call->run) {
        *call->slot = (struct away_slot){NULL, NULL};
        call->done (call->run, result);
    }
    free (call);
}

void away_call (struct away *run, struct away_slot *slot, const char *method,
                const ProtobufCMessage *request,
                void (*done) (struct away *run, const struct rpc_result *result))
{
    assert (!slot->out);
    struct away_call *call = mem_alloc (sizeof *call);
    *call = (struct away_call){run, slot, done};
    struct rpccallout_config config = {.service = &nui__node__v1__node__descriptor,
                                       .method = method,
                                       .request = request,
                                       .timeout = CALL_S * US_PER_S,
                                       .idempotent = true,
                                       .reply_bytes_max = FILES_BYTES_MAX,
                                       .done = on_call_done,
                                       .arg = call};
    *slot = (struct away_slot){rpcclient_start (run->agent->client, &config), call};
    assert (slot->out); /* NULL only while the client is destroyed */
}

void away_drop (struct away_slot *slot)
{
    struct rpccallout *out = slot->out;
    if (!out)
        return;
    slot->call->run = NULL;
    *slot = (struct away_slot){NULL, NULL};
    rpccallout_cancel (out);
}

/* The host's word, rather than silence or a lost connection. */
static bool away_said_no (const struct rpc_result *result)
{
    return result->answered && result->status != RPC_OK && result->status != RPC_UNAVAILABLE &&
           result->status != RPC_CANCELLED && result->status != RPC_DEADLINE_EXCEEDED &&
           result->status != RPC_ABORTED;
}

void away_name (const struct away *run, Nui__Node__V1__Run *out)
{
    nui__node__v1__run__init (out);
    out->job_id = (char *)run->job_id;
    out->incarnation = run->incarnation;
    out->mark = (char *)run->mark;
}

static void away_again (struct away *run)
{
    struct timeval later = {.tv_sec = AGAIN_S};
    event_add (run->again, &later);
}

static void on_acted (void *arg, const struct rpc_result *result)
{
    (void)arg;
    (void)result; /* a cancel is said again when the host tells of the run (away_told) */
}

static void agent_act (struct agent *agent, Nui__Node__V1__Run *name, Nui__Node__V1__Act act,
                       int signo)
{
    Nui__Node__V1__ActRequest request = NUI__NODE__V1__ACT_REQUEST__INIT;
    request.run = name;
    request.act = act;
    request.signal = signo;
    struct rpccallout_config call = {.service = &nui__node__v1__node__descriptor,
                                     .method = "Act",
                                     .request = &request.base,
                                     .idempotent = true,
                                     .done = on_acted};
    rpcclient_start (agent->client, &call);
}

void away_act (struct away *run, Nui__Node__V1__Act act, int signo)
{
    Nui__Node__V1__Run name;
    away_name (run, &name);
    agent_act (run->agent, &name, act, signo);
}

/* --- its end ---------------------------------------------------------------------------------- */

static void on_taken (void *arg, const struct rpc_result *result)
{
    (void)arg;
    (void)result; /* if it did not arrive, it is said again when the host tells of the run */
}

void agent_taken (struct agent *agent, Nui__Node__V1__Run *name)
{
    Nui__Node__V1__TakenRequest request = NUI__NODE__V1__TAKEN_REQUEST__INIT;
    request.run = name;
    struct rpccallout_config call = {.service = &nui__node__v1__node__descriptor,
                                     .method = "Taken",
                                     .request = &request.base,
                                     .idempotent = true,
                                     .done = on_taken};
    rpcclient_start (agent->client, &call);
}

void away_stranger (struct agent *agent, const Nui__Node__V1__RunState *state)
{
    int dir = jobdir_open (agent->agents->dir, state->run->job_id, state->run->incarnation,
                           state->run->mark, NULL);
    bool over = dir >= 0 && faccessat (dir, "status", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (dir >= 0)
        close (dir);
    if (over && state->ended)
        agent_taken (agent, state->run);
    else if (over) /* a further host's, of a job that is over */
        agent_act (agent, state->run, NUI__NODE__V1__ACT__ACT_CANCEL, 0);
    else if (dir < 0)
        log_event (agent->agents->log, LOG_LEVEL_WARN, "rm", "stranger",
                   "node=%s run=%s reason=\"the host has a run that nobody here knows\"",
                   agent->node, state->run->job_id);
}

/* The run is over with run->end, and its files are here. */
static void away_finish (struct away *run, bool there)
{
    if (run->part) {
        part_over (run, run->end.text);
        return;
    }
    struct rm_status *end = &run->end;
    time_us now = clock_now_us ();
    end->end_at = end->end_at > now || end->end_at == 0 ? now : end->end_at;
    end->start = end->start > end->end_at ? end->end_at : end->start;
    if ((end->started && run_started_write (run->dir, end) != 0) ||
        run_status_write (run->dir, end) != 0) {
        log_event (run->agents->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   run->key, errno);
        away_again (run);
        return;
    }
    Nui__Node__V1__Run name;
    away_name (run, &name);
    if (there)
        agent_taken (run->agent, &name);
    away_destroy (run);
}

static void away_end (struct away *run, enum rm_end how, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static void away_end (struct away *run, enum rm_end how, const char *fmt, ...)
{
    va_list ap;
    run->end.ended = true;
    run->end.end = how;
    run->end.exit_code = how == RM_END_CANCELLED ? 0 : how == RM_END_NODE_FAILURE ? 255 : 127;
    va_start (ap, fmt);
    text_vprintf (run->end.text, sizeof run->end.text, fmt, ap);
    va_end (ap);
    away_drop (&run->call);
    runfiles_free (&run->files);
    run->state = AWAY_UNKNOWN;
    away_finish (run, false);
}

/* --- files that come back --------------------------------------------------------------------- */

/* What cannot be written for want of room is tried again; what cannot be at all is told of, and left. False: wait. */
static bool away_write (struct away *run, const struct runfile *file, const void *bytes, size_t len)
{
    struct err err = {0};
    int rc = runfiles_write (run->work, file, run->offset, bytes, len, run->uid, run->gid, &err);
    if (rc == 0)
        return true;
    log_event (run->agents->log, LOG_LEVEL_WARN, "rm", "file_not_taken", "job=%s error=\"%s\"",
               run->key, err.text);
    return rc != ERR_LIMIT;
}

static void on_got (struct away *run, const struct rpc_result *result)
{
    const Nui__Node__V1__GetReply *reply = (const Nui__Node__V1__GetReply *)result->reply;
    if (result->status != RPC_OK && !away_said_no (result)) {
        away_again (run);
        return;
    }
    const struct runfile *file = &run->files.file[run->at];
    size_t len = result->status == RPC_OK ? reply->data.len : 0;
    if (result->status == RPC_OK && (len > 0 || run->offset == 0) &&
        !away_write (run, file, reply->data.data, len)) {
        away_again (run);
        return;
    }
    run->offset += (int64_t)len;
    if (len < RUNFILES_PIECE) {
        run->at++;
        run->offset = 0;
    }
    away_fetch (run);
}

static void away_fetch (struct away *run)
{
    for (; run->at < run->files.count; run->at++) {
        const struct runfile *file = &run->files.file[run->at];
        if (file->kind == RUNFILE_PLAIN)
            break;
        if (!away_write (run, file, NULL, 0)) {
            away_again (run);
            return;
        }
    }
    if (run->at == run->files.count) {
        away_finish (run, true);
        return;
    }
    Nui__Node__V1__Run name;
    Nui__Node__V1__GetRequest request = NUI__NODE__V1__GET_REQUEST__INIT;
    away_name (run, &name);
    request.run = &name;
    request.path = run->files.file[run->at].path;
    request.offset = run->offset;
    away_call (run, &run->call, "Get", &request.base, on_got);
}

static void on_files (struct away *run, const struct rpc_result *result)
{
    const Nui__Node__V1__FilesReply *reply = (const Nui__Node__V1__FilesReply *)result->reply;
    if (result->status != RPC_OK && !away_said_no (result)) {
        away_again (run);
        return;
    }
    size_t count = result->status == RPC_OK ? reply->n_file : 0;
    if (result->status != RPC_OK)
        log_event (run->agents->log, LOG_LEVEL_ERROR, "rm", "files_not_told",
                   "job=%s error=\"%.200s\"", run->key, result->message);
    run->files.file = mem_zero (count + 1, sizeof *run->files.file);
    for (size_t i = 0; i < count; i++)
        if (reply->file[i]->kind <= NUI__NODE__V1__FILE_KIND__FILE_LINK)
            run->files.file[run->files.count++] =
                (struct runfile){.path = strdup (reply->file[i]->path),
                                 .target = strdup (reply->file[i]->target),
                                 .kind = (enum runfile_kind)reply->file[i]->kind,
                                 .mode = reply->file[i]->mode};
    away_fetch (run);
}

static void away_files (struct away *run)
{
    Nui__Node__V1__Run name;
    Nui__Node__V1__FilesRequest request = NUI__NODE__V1__FILES_REQUEST__INIT;
    away_drop (&run->call);
    runfiles_free (&run->files);
    run->at = 0;
    run->offset = 0;
    run->state = AWAY_FETCHING;
    away_name (run, &name);
    request.run = &name;
    away_call (run, &run->call, "Files", &request.base, on_files);
}

/* --- acts ------------------------------------------------------------------------------------- */

int agents_act (struct agents *agents, const char *job_id, uint32_t incarnation,
                enum agents_act act, int signo, struct err *err)
{
    static const Nui__Node__V1__Act acts[] = {
        [AGENTS_SIGNAL] = NUI__NODE__V1__ACT__ACT_SIGNAL,
        [AGENTS_CANCEL] = NUI__NODE__V1__ACT__ACT_CANCEL,
        [AGENTS_SUSPEND] = NUI__NODE__V1__ACT__ACT_SUSPEND,
        [AGENTS_RESUME] = NUI__NODE__V1__ACT__ACT_RESUME,
    };
    agents_parts_stop (agents, job_id, incarnation,
                       act == AGENTS_SUSPEND  ? SIGSTOP
                       : act == AGENTS_RESUME ? SIGCONT
                                              : 0);
    struct away *run = away_find (agents, job_id, incarnation);
    if (!run)
        return 0; /* its end is being noticed */
    run->cancel |= act == AGENTS_CANCEL;
    if (act == AGENTS_SUSPEND || act == AGENTS_RESUME)
        run->stop = (int)acts[act];
    if (run->state == AWAY_THERE && run->agent->told)
        away_act (run, acts[act], signo);
    else if (act == AGENTS_SIGNAL && run->state != AWAY_FETCHING)
        return err_set (err, ERR_UNAVAILABLE, "job %s is on %s, which cannot be reached", run->key,
                        run->agent->node);
    else if (act == AGENTS_CANCEL && !run->asked)
        away_end (run, RM_END_CANCELLED, "cancelled before it began");
    return 0;
}

/* --- files that go, and the beginning --------------------------------------------------------- */

static void away_handed_name (const struct away *run, char out[70])
{
    text_printf (out, 70, "%s%s%.60s", handed_file, run->part ? "@" : "",
                 run->part ? run->agent->node : "");
}

static bool away_handed (const struct away *run)
{
    char name[70];
    away_handed_name (run, name);
    return faccessat (run->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The host has it for good. */
static void away_there (struct away *run)
{
    char handed[70];
    away_handed_name (run, handed);
    runfiles_free (&run->files);
    run->state = AWAY_THERE;
    if (!away_handed (run) && file_write_durable (run->dir, handed, "", 0, 0600) != 0)
        log_event (run->agents->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   run->key, errno);
    if (run->stop)
        away_act (run, (Nui__Node__V1__Act)run->stop, 0);
    if (run->cancel)
        away_act (run, NUI__NODE__V1__ACT__ACT_CANCEL, 0);
}

static void on_begun (struct away *run, const struct rpc_result *result)
{
    if (result->status == RPC_OK)
        away_there (run);
    else if (!away_said_no (result))
        away_again (run);
    else if (away_handed (run))
        away_end (run, RM_END_NODE_FAILURE, "host %s has nothing of it any more", run->agent->node);
    else
        away_end (run, RM_END_START_FAILED, "host %s: %.150s", run->agent->node, result->message);
}

static void away_begin (struct away *run)
{
    Nui__Node__V1__Run name;
    Nui__Node__V1__StartRequest request = NUI__NODE__V1__START_REQUEST__INIT;
    size_t len = 0;
    char *spec = file_read_all (run->dir, "spec", &len);
    if (!spec) {
        away_again (run);
        return;
    }
    run->state = AWAY_STARTING;
    run->asked = true;
    away_name (run, &name);
    request.run = &name;
    request.spec.data = (uint8_t *)spec;
    request.spec.len = len;
    request.parent = (char *)run->agents->job_dir;
    request.part = run->part;
    request.procs = run->procs;
    request.memory_mb = run->memory_mb;
    away_call (run, &run->call, "Start", &request.base, on_begun);
    free (spec);
}

static void on_put (struct away *run, const struct rpc_result *result)
{
    const struct runfile *file = &run->files.file[run->at];
    if (result->status != RPC_OK && away_said_no (result)) {
        away_end (run, RM_END_START_FAILED, "host %s: %.150s", run->agent->node, result->message);
        return;
    }
    if (result->status != RPC_OK) {
        away_again (run);
        return;
    }
    if (file->kind == RUNFILE_PLAIN && run->offset < file->size) {
        away_send (run);
        return;
    }
    run->at++;
    run->offset = 0;
    away_send (run);
}

/* The next piece, or, after the last one, the beginning. */
static void away_send (struct away *run)
{
    Nui__Node__V1__Run name;
    Nui__Node__V1__PutRequest request = NUI__NODE__V1__PUT_REQUEST__INIT;
    struct err err = {0};
    if (run->at == run->files.count) {
        away_begin (run);
        return;
    }
    struct runfile *file = &run->files.file[run->at];
    away_name (run, &name);
    request.run = &name;
    request.path = file->path;
    request.kind = (Nui__Node__V1__FileKind)file->kind;
    request.mode = file->mode;
    request.target = file->target ? file->target : (char *)"";
    request.account = run->account;
    request.offset = run->offset;
    request.anew = run->at == 0 && run->offset == 0;
    request.data.data = mem_alloc (RUNFILES_PIECE);
    int rc = file->kind == RUNFILE_PLAIN
                 ? runfiles_read (run->work, file->path, run->offset, request.data.data,
                                  &request.data.len, &err)
                 : 0;
    if (rc == 0) {
        run->offset += (int64_t)request.data.len;
        if (request.data.len < RUNFILES_PIECE)
            file->size = run->offset; /* as it is now */
        away_call (run, &run->call, "Put", &request.base, on_put);
    } else {
        away_end (run, RM_END_START_FAILED, "%.200s", err.text);
    }
    free (request.data.data);
}

/* From the first file; or, where the host has had all of them for good, what it says to that. */
static void away_go (struct away *run)
{
    struct err err = {0};
    away_drop (&run->call);
    runfiles_free (&run->files);
    run->at = 0;
    run->offset = 0;
    if (away_handed (run)) {
        away_begin (run);
        return;
    }
    if (run->cancel) {
        away_end (run, RM_END_CANCELLED, "cancelled before it began");
        return;
    }
    run->state = AWAY_SENDING;
    if (runfiles_list (run->work, NULL, &run->files, &err) != 0)
        away_end (run, RM_END_START_FAILED, "%.200s", err.text);
    else
        away_send (run);
}

static void on_again (evutil_socket_t fd, short what, void *arg)
{
    struct away *run = arg;
    (void)fd;
    (void)what;
    if (run->end.ended && run->state == AWAY_UNKNOWN)
        away_finish (run, false);
    else if (!run->agent->told)
        return; /* it begins with what the host tells */
    else if (run->state == AWAY_FETCHING)
        away_files (run);
    else if (run->state != AWAY_THERE)
        away_go (run);
}

/* --- what the host tells ---------------------------------------------------------------------- */

void away_told (struct away *run, const Nui__Node__V1__RunState *state)
{
    run->asked = true;
    if (run->part && (state->ended || run->over)) {
        part_told (run, state);
        return;
    }
    if (state->ended) {
        run->end = (struct rm_status){.started = state->started,
                                      .ended = true,
                                      .start = state->start_us > 0 ? state->start_us : 0,
                                      .end_at = state->end_us > 0 ? state->end_us : 0,
                                      .end = run_end_of (state->how),
                                      .exit_code = state->exit_code,
                                      .cpu_known = state->cpu_known && state->cpu_us >= 0,
                                      .cpu_time = state->cpu_us};
        text_printf (run->end.text, sizeof run->end.text, "%s", state->text);
        if (run->state != AWAY_FETCHING || !run->call.out)
            away_files (run);
        return;
    }
    away_drop (&run->call);
    away_there (run);
    if (run->part) {
        part_told (run, state);
        return;
    }
    struct rm_status began = {.started = true, .start = state->start_us};
    if (state->started && faccessat (run->dir, "started", F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
        run_started_write (run->dir, &began) != 0)
        log_event (run->agents->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   run->key, errno);
}

void away_absent (struct away *run)
{
    if (!(run->end.ended && run->state == AWAY_UNKNOWN))
        away_go (run);
}

void away_cut (struct away *run)
{
    away_drop (&run->call);
    away_drop (&run->measure);
    away_drop (&run->mirror);
    runfiles_free (&run->files);
    run->state = AWAY_UNKNOWN;
    run->end.ended = false; /* the host will say it again */
}

/* --- while it runs ---------------------------------------------------------------------------- */

static void on_measured (struct away *run, const struct rpc_result *result)
{
    const Nui__Node__V1__UsedReply *reply = (const Nui__Node__V1__UsedReply *)result->reply;
    if (result->status != RPC_OK)
        return;
    run->measured = true;
    run->used = (struct rm_used){.cpu_time = reply->cpu_us > 0 ? reply->cpu_us : 0,
                                 .memory_mb = reply->memory_mb};
    const uint32_t kept[] = {reply->memory_kept, reply->processors_kept, reply->cpu_time_kept,
                             reply->processes_kept};
    enum rm_keeper *at[] = {&run->limits.memory, &run->limits.processors, &run->limits.cpu_time,
                            &run->limits.processes};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        *at[i] = kept[i] <= RM_KEPT_BY_RLIMIT ? (enum rm_keeper)kept[i] : RM_KEPT_BY_NOTHING;
}

int agents_measured (struct agents *agents, const char *job_id, uint32_t incarnation,
                     struct rm_used *used, struct rm_limits *limits, struct err *err)
{
    struct away *run = away_find (agents, job_id, incarnation);
    if (run && run->state == AWAY_THERE && run->agent->told && !run->measure.out) {
        Nui__Node__V1__Run name;
        Nui__Node__V1__UsedRequest request = NUI__NODE__V1__USED_REQUEST__INIT;
        away_name (run, &name);
        request.run = &name;
        away_call (run, &run->measure, "Used", &request.base, on_measured);
    }
    if (!run || !run->measured)
        return err_set (err, ERR_NOT_FOUND, "nothing has been heard of job %s yet", job_id);
    if (used)
        *used = run->used;
    if (limits)
        *limits = run->limits;
    return 0;
}

/* A stream's name and how much of it is here. */
static int64_t away_stream (const struct away *run, char name[256])
{
    size_t len = 0;
    char *spec = file_read_all (run->dir, "spec", &len);
    const char *value = spec ? spec_get (spec, len, streams[run->stream]) : NULL;
    int fd = -1;
    snprintf (name, 256, "%s", value ? value : streams[run->stream]);
    free (spec);
    fd = openat (run->work, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    off_t size = fd >= 0 ? lseek (fd, 0, SEEK_END) : 0;
    if (fd >= 0)
        close (fd);
    return size > 0 ? size : 0;
}

static void away_mirror (struct away *run);

static void on_mirrored (struct away *run, const struct rpc_result *result)
{
    const Nui__Node__V1__GetReply *reply = (const Nui__Node__V1__GetReply *)result->reply;
    char name[256];
    int64_t have = away_stream (run, name);
    struct runfile file = {.path = name, .mode = 0600};
    struct err err = {0};
    bool more = result->status == RPC_OK && reply->data.len > 0 && run->state == AWAY_THERE &&
                runfiles_write (run->work, &file, have, reply->data.data, reply->data.len, run->uid,
                                run->gid, &err) == 0;
    if (more && reply->data.len == RUNFILES_PIECE)
        away_mirror (run);
    else if (++run->stream < 2)
        away_mirror (run);
    else
        run->stream = 0;
}

static void away_mirror (struct away *run)
{
    char path[256];
    Nui__Node__V1__Run name;
    Nui__Node__V1__GetRequest request = NUI__NODE__V1__GET_REQUEST__INIT;
    away_name (run, &name);
    request.run = &name;
    request.offset = away_stream (run, path);
    request.path = path;
    away_call (run, &run->mirror, "Get", &request.base, on_mirrored);
}

void agents_output_wanted (struct agents *agents, const char *job_id, uint32_t incarnation)
{
    struct away *run = away_find (agents, job_id, incarnation);
    if (run && run->state == AWAY_THERE && run->agent->told && !run->mirror.out) {
        run->stream = 0;
        away_mirror (run);
    }
}

/* --- coming and going ------------------------------------------------------------------------- */

struct away *away_find (const struct agents *agents, const char *job_id, uint32_t incarnation)
{
    char key[JOBDIR_KEY_MAX];
    struct away *run = NULL;
    jobdir_key (job_id, incarnation, key);
    if (agents)
        HASH_FIND_STR (agents->runs, key, run);
    return run;
}

static void away_part_key (const char *job_id, uint32_t incarnation, const char *node,
                           char out[JOBDIR_KEY_MAX + 80])
{
    char key[JOBDIR_KEY_MAX];
    jobdir_key (job_id, incarnation, key);
    text_printf (out, JOBDIR_KEY_MAX + 80, "%s@%.70s", key, node);
}

struct away *away_find_part (const struct agents *agents, const char *job_id, uint32_t incarnation,
                             const char *node)
{
    char key[JOBDIR_KEY_MAX + 80];
    struct away *run;
    away_part_key (job_id, incarnation, node, key);
    HASH_FIND_STR (agents->runs, key, run);
    return run;
}

void away_destroy (struct away *run)
{
    HASH_DEL (run->agents->runs, run);
    away_drop (&run->call);
    away_drop (&run->measure);
    away_drop (&run->mirror);
    runfiles_free (&run->files);
    if (run->again)
        event_free (run->again);
    if (run->port_again)
        event_free (run->port_again);
    if (run->work >= 0)
        close (run->work);
    if (run->dir >= 0)
        close (run->dir);
    free (run);
}

/* Its account, as it is known here. */
static int away_account (struct away *run, struct err *err)
{
    struct passwd pw;
    char buf[4096];
    size_t len = 0;
    char *spec = file_read_all (run->dir, "spec", &len);
    const char *account = spec ? spec_get (spec, len, "account") : NULL;
    snprintf (run->account, sizeof run->account, "%s", account ? account : "");
    free (spec);
    int rc = jobdir_account (run->account, &pw, buf, sizeof buf, err);
    run->uid = rc == 0 ? pw.pw_uid : 0;
    run->gid = rc == 0 ? pw.pw_gid : 0;
    return rc;
}

int away_begin_run (struct agents *agents, struct agent *agent, const char *job_id,
                    uint32_t incarnation, const char *mark, const struct agents_part *part,
                    bool again, struct err *err)
{
    struct away *run = mem_zero (1, sizeof *run);
    *run = (struct away){
        .agents = agents, .agent = agent, .incarnation = incarnation, .work = -1, .asked = again};
    snprintf (run->job_id, sizeof run->job_id, "%s", job_id);
    snprintf (run->mark, sizeof run->mark, "%s", mark ? mark : "");
    jobdir_key (job_id, incarnation, run->key);
    if (part) {
        away_part_key (job_id, incarnation, agent->node, run->key);
        run->part = true;
        run->procs = part->procs;
        run->memory_mb = part->memory_mb;
    }
    HASH_ADD_STR (agents->runs, key, run);
    run->again = event_new (agents->base, -1, 0, on_again, run);
    run->dir = jobdir_open (agents->dir, job_id, incarnation, mark, err);
    int rc = run->dir < 0 ? ERR_IO : away_account (run, err);
    if (rc == 0)
        run->work = openat (run->dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (rc == 0 && run->work < 0)
        rc = err_set (err, ERR_IO, "working directory of job %s: %s", run->key, strerror (errno));
    if (rc != 0) {
        away_destroy (run);
        return rc;
    }
    if (agent->told)
        away_go (run);
    return 0;
}

int agents_run (struct agents *agents, const char *job_id, uint32_t incarnation, const char *mark,
                const char *node, bool again, struct err *err)
{
    struct agent *agent = agent_find (agents, node);
    if (!agent)
        return err_set (err, ERR_NOT_FOUND, "NODECFG[%.60s] has no AGENT any more", node);
    return away_find (agents, job_id, incarnation)
               ? 0
               : away_begin_run (agents, agent, job_id, incarnation, mark, NULL, again, err);
}
