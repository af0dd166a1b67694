/* No call by anybody may hold a daemon's loop for longer than 20 ms, and nobody may call what is not theirs.
 *
 * Every method of the daemon's services is called with the largest messages that the guard admits (wire.h), each field
 * that can grow in turn and all of them together, in a world with as much in it as a busy one has. What is measured is
 * work, not time: basic blocks of our own code, and what libraries do for us at a price per call, per byte and per step
 * of SQLite's machine. The same on each machine and however busy it is. README.md says how the bound came about.
 *
 *     handlers_local [METHOD]        prints the dearest call of each method; with a METHOD, each of its calls */
#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/handlers/world.h"

enum {
    BLOCKS_MAX = 20000000, /* 20 ms */
    VERIFY = 100000,       /* a signature or a certificate: 100 us */
    PREPARE = 15000,       /* a statement is compiled */
    VM_STEP = 30,          /* of SQLite's machine */
    ALLOCATION = 40,
    FIELDS_MAX = 400,
    FULL_MAX = 64,
    MORE_PATIENCE_MS = 60000,
};

/* ---- the meter */

static uint64_t work;

void __sanitizer_cov_trace_pc (void);
void __sanitizer_cov_trace_pc (void)
{
    work++;
}

static uint64_t work_so_far (void)
{
    return work;
}

#define WRAP(type, name, args)                                                                     \
    type __real_##name args;                                                                       \
    type __wrap_##name args;                                                                       \
    type __wrap_##name args

WRAP (void *, malloc, (size_t size))
{
    work += ALLOCATION + size / 64;
    return __real_malloc (size);
}

WRAP (void *, calloc, (size_t n, size_t size))
{
    work += ALLOCATION + n * size / 64;
    return __real_calloc (n, size);
}

WRAP (void *, realloc, (void *p, size_t size))
{
    work += ALLOCATION + size / 64;
    return __real_realloc (p, size);
}

WRAP (int, sqlite3_step, (sqlite3_stmt * s))
{
    int rc = __real_sqlite3_step (s);
    work += (uint64_t)sqlite3_stmt_status (s, SQLITE_STMTSTATUS_VM_STEP, 1) * VM_STEP;
    return rc;
}

WRAP (int, sqlite3_prepare_v3,
      (sqlite3 * db, const char *sql, int n, unsigned flags, sqlite3_stmt **s, const char **tail))
{
    work += PREPARE;
    return __real_sqlite3_prepare_v3 (db, sql, n, flags, s, tail);
}

WRAP (int, sqlite3_prepare_v2,
      (sqlite3 * db, const char *sql, int n, sqlite3_stmt **s, const char **tail))
{
    work += PREPARE;
    return __real_sqlite3_prepare_v2 (db, sql, n, s, tail);
}

WRAP (int, sqlite3_exec,
      (sqlite3 * db, const char *sql, int (*fn) (void *, int, char **, char **), void *arg,
       char **text))
{
    work += PREPARE;
    return __real_sqlite3_exec (db, sql, fn, arg, text);
}

WRAP (int, EVP_PKEY_verify,
      (EVP_PKEY_CTX * ctx, const unsigned char *sig, size_t len, const unsigned char *tbs,
       size_t tbs_len))
{
    work += VERIFY;
    return __real_EVP_PKEY_verify (ctx, sig, len, tbs, tbs_len);
}

WRAP (int, EVP_DigestVerify,
      (EVP_MD_CTX * ctx, const unsigned char *sig, size_t len, const unsigned char *tbs,
       size_t tbs_len))
{
    work += VERIFY + tbs_len;
    return __real_EVP_DigestVerify (ctx, sig, len, tbs, tbs_len);
}

WRAP (int, X509_verify_cert, (void *ctx))
{
    work += 3 * VERIFY;
    return __real_X509_verify_cert (ctx);
}

WRAP (int, EVP_DigestUpdate, (EVP_MD_CTX * ctx, const void *bytes, size_t len))
{
    work += len;
    return __real_EVP_DigestUpdate (ctx, bytes, len);
}

static void *counted_alloc (void *arg, size_t size)
{
    (void)arg;
    work += ALLOCATION + size / 64;
    return __real_malloc (size);
}

static void counted_free (void *arg, void *p)
{
    (void)arg;
    free (p);
}

WRAP (ProtobufCMessage *, protobuf_c_message_unpack,
      (const ProtobufCMessageDescriptor *d, ProtobufCAllocator *allocator, size_t len,
       const uint8_t *bytes))
{
    ProtobufCAllocator counted = {counted_alloc, counted_free, NULL};
    work += 2 * len;
    return __real_protobuf_c_message_unpack (d, allocator ? allocator : &counted, len, bytes);
}

WRAP (size_t, protobuf_c_message_pack, (const ProtobufCMessage *message, uint8_t *out))
{
    size_t len = __real_protobuf_c_message_pack (message, out);
    work += 2 * len;
    return len;
}

/* ---- the calls */

struct dearest {
    uint64_t work;
    double ms;
    size_t bytes;
    char what[WIRE_NAME_MAX + 32], answer[96], plain[96];
};

static struct ground ground;
static uint64_t numbers = 1000000; /* of jobs that come new */
static const char *only;

/* Who may, first of all who has the most to say. */
static const struct inproc_caller *caller_for (const struct inproc_method *m)
{
    for (const struct inproc_caller *c = world.callers; c->name; c++)
        if (c->local && c->uid == 0 && (m->info->allow & RPC_ALLOW (c->kind)))
            return c;
    for (const struct inproc_caller *c = world.callers; c->name; c++)
        if (c->kind == PRINCIPAL_OPERATOR && (m->info->allow & RPC_ALLOW (c->kind)))
            return c;
    for (const struct inproc_caller *c = world.callers; c->name; c++)
        if (m->info->allow & RPC_ALLOW (c->kind))
            return c;
    return world.callers;
}

static double now_ms (void)
{
    struct timespec ts;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* What surrounds the field that grows. */
enum { ROOM = 4096, TRIES = 3 };

/* How a request is made; 0 after the last of them. */
struct making {
    enum { PLAIN, NOTHING, WIDE, FULL, LARGE, MORE } how;
    const struct world_more *more;
    unsigned n, style; /* so many of each; the field that grows */
    size_t most;
    char what[WIRE_NAME_MAX + 32];
};

static bool make (struct wire *w, const struct inproc_method *m, struct making *making)
{
    const ProtobufCMessageDescriptor *input = m->descriptor->input;
    char name[WIRE_NAME_MAX];
    bool made = true;
    w->len = 0;
    snprintf (making->what, sizeof making->what, "%s",
              making->how == PLAIN     ? "plain"
              : making->how == NOTHING ? "nothing"
                                       : "all there is");
    if (making->how == PLAIN) {
        wire_plain (w, input, &world.signers, numbers++);
    } else if (making->how == WIDE) {
        wire_wide (w, input);
    } else if (making->how == FULL) {
        wire_full (w, input, &world.signers, numbers++, making->n, making->most);
        snprintf (making->what, sizeof making->what, "all of it, %u each", making->n);
    } else if (making->how == MORE) {
        making->more->make (w, numbers++);
        snprintf (making->what, sizeof making->what, "%s", making->more->what);
    } else if (making->how == LARGE) {
        made = wire_large (w, input, &world.signers, numbers++, making->n, making->style,
                           making->most, name);
        snprintf (making->what, sizeof making->what, "%s (%u)", made ? name : "", making->style);
    }
    if (w->len > (size_t)4 << 30 || !w->bytes)
        w->len = 0;
    return made;
}

/* What else came due in the same turn of the loop is not the call's: what seems too much is tried again, anew. */
static bool call_one (const struct inproc_method *m, const struct inproc_caller *caller,
                      struct wire *w, struct making making, struct dearest *d)
{
    struct inproc_result r = {.work = UINT64_MAX}, again;
    double ms = 0;
    for (int i = 0; i < TRIES && r.work > BLOCKS_MAX; i++) {
        if (!make (w, m, &making))
            return false;
        double before = now_ms ();
        inproc_call (m, caller, w->bytes, w->len, NULL, &again);
        if (again.work >= r.work)
            continue;
        r = again;
        ms = now_ms () - before;
    }
    const char *what = making.what;
    if (only)
        printf ("  %-44s %8zu bytes by %-6s %12llu %8.2f ms  %d %.60s\n", what, w->len,
                caller->name, (unsigned long long)r.work, ms, r.answered ? (int)r.status : -1,
                r.text);
    if (making.how == PLAIN)
        snprintf (d->plain, sizeof d->plain, "%d %.80s", r.answered ? (int)r.status : -1, r.text);
    if (r.work <= d->work)
        return true;
    d->work = r.work;
    d->ms = ms;
    d->bytes = w->len;
    snprintf (d->what, sizeof d->what, "%s", what);
    snprintf (d->answer, sizeof d->answer, "%d %.80s", r.answered ? (int)r.status : -1, r.text);
    return true;
}

static void method_calls (const struct inproc_method *m, struct dearest *d)
{
    size_t most = (m->info->request_bytes_max ? m->info->request_bytes_max : 64 * 1024) - ROOM;
    const struct inproc_caller *caller = caller_for (m);
    struct wire w = {0};
    call_one (m, caller, &w, (struct making){.how = PLAIN}, d);
    call_one (m, caller, &w, (struct making){.how = NOTHING}, d);
    call_one (m, caller, &w, (struct making){.how = WIDE}, d);
    for (unsigned each = 2; each <= FULL_MAX; each *= 2)
        call_one (m, caller, &w, (struct making){.how = FULL, .n = each, .most = most}, d);
    struct making large = {.how = LARGE, .most = most};
    for (bool more = true; more && large.n < FIELDS_MAX; large.n++)
        for (large.style = 0; more && large.style < WIRE_STYLES; large.style++)
            more = call_one (m, caller, &w, large, d);
    wire_free (&w);
}

/* Those that only this world has; they are waited for. */
static void world_calls (struct dearest *list, char (*names)[64], unsigned count)
{
    struct wire w = {0};
    inproc_patience (MORE_PATIENCE_MS);
    for (const struct world_more *one = world.more; one && one->method; one++)
        for (unsigned i = 0; i < count; i++) {
            const struct inproc_method *m = inproc_method (i);
            if (strcmp (one->method, names[i]) == 0 && (!only || strcmp (only, names[i]) == 0))
                call_one (m, caller_for (m), &w, (struct making){.how = MORE, .more = one},
                          &list[i]);
        }
    wire_free (&w);
}

static int by_work (const void *a, const void *b)
{
    const struct dearest *x = a, *y = b;
    return x->work < y->work ? 1 : x->work > y->work ? -1 : 0;
}

static unsigned all_calls (void)
{
    static struct dearest list[128];
    static char names[128][64];
    struct dearest sorted[128];
    unsigned count = inproc_method_count (), over = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct inproc_method *m = inproc_method (i);
        snprintf (names[i], sizeof names[i], "%s.%s", m->service->short_name, m->info->name);
        if (only && strcmp (only, names[i]) != 0)
            continue;
        method_calls (m, &list[i]);
    }
    world_calls (list, names, count);
    for (unsigned i = 0; i < count; i++)
        if (list[i].what[0])
            snprintf (list[i].what + strlen (list[i].what), 32, "|%u", i);
    memcpy (sorted, list, sizeof sorted);
    qsort (sorted, count, sizeof *sorted, by_work);
    printf ("%-24s %12s %6s %9s  %-40s %s\n", world.name, "work", "of max", "bytes", "dearest by",
            "answer");
    for (unsigned i = 0; i < count; i++) {
        char *bar = strrchr (sorted[i].what, '|');
        if (!bar)
            continue;
        *bar = '\0';
        printf ("%-24s %12llu %5.1f%% %9zu  %-40s %s [%.1f ms]\n", names[atoi (bar + 1)],
                (unsigned long long)sorted[i].work, 100.0 * (double)sorted[i].work / BLOCKS_MAX,
                sorted[i].bytes, sorted[i].what, sorted[i].answer, sorted[i].ms);
        if (getenv ("NUI_WORK_PLAIN"))
            printf ("        plain: %s\n", sorted[i].plain);
        over += sorted[i].work > BLOCKS_MAX;
    }
    return over;
}

/* Those who have no business with a service are refused each of its methods, whatever they say. */
static unsigned strangers (void)
{
    unsigned wrong = 0;
    for (const struct world_stranger *s = world.strangers; s && s->service; s++)
        for (unsigned i = 0; i < inproc_method_count (); i++) {
            const struct inproc_method *m = inproc_method (i);
            struct inproc_result r;
            struct wire w = {0};
            if (strcmp (m->service->short_name, s->service) != 0)
                continue;
            wire_plain (&w, m->descriptor->input, &world.signers, numbers++);
            inproc_call (m, &s->caller, w.bytes ? w.bytes : (uint8_t[1]){0}, w.len, NULL, &r);
            wire_free (&w);
            if (r.answered && r.status == RPC_PERMISSION_DENIED)
                continue;
            printf ("%s.%s: %s is not refused, but answered %d %s\n", s->service, m->info->name,
                    s->caller.name, r.answered ? (int)r.status : -1, r.text);
            wrong++;
        }
    return wrong;
}

/* What is counted is the same whatever AddressSanitizer remembers of each allocation, which was half of the time: mistakes
 * with memory are replay_*'s business. */
const char *__asan_default_options (void);
const char *__asan_default_options (void)
{
    return "quarantine_size_mb=8:thread_local_quarantine_size_kb=256:malloc_context_size=1";
}

int main (int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    setvbuf (stdout, NULL, _IOLBF, 0);
    ground_open (&ground);
    world.signers.alice = ground.alice;
    world.signers.bob = ground.bob;
    double before = now_ms ();
    world.open (&ground, true);
    printf ("%s: its world took %.0f ms of CPU, %llu of work\n", world.name, now_ms () - before,
            (unsigned long long)work);
    fflush (stdout);
    unsigned wrong = strangers ();
    inproc_meter = work_so_far;
    unsigned over = all_calls ();
    world.close ();
    if (over)
        printf ("%u methods can hold the loop for more than %d of work\n", over, BLOCKS_MAX);
    return over || wrong ? 1 : 0;
}
