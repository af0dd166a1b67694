/* Requests as bytes: see wire.h. Fields are written straight onto the wire, so nothing here knows the generated structs
 * beyond their descriptors. */
#include "tests/fuzz/handlers/wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/job/delegation.h"
#include "proto/rpc/envelope.h"

enum {
    JOB_MAX = ENVELOPE_BODY_MAX - 4096,
    DEPTH_MAX = 8,
    DRAWN_MAX = 512 * 1024,
    MANY = 400,
    UUIDS = 16
};

/* ---- bytes */

static void put (struct wire *w, const void *bytes, size_t len)
{
    if (w->len + len > w->cap) {
        w->cap = 2 * (w->len + len) + 256;
        w->bytes = realloc (w->bytes, w->cap);
        if (!w->bytes)
            abort ();
    }
    if (len)
        memcpy (w->bytes + w->len, bytes, len);
    w->len += len;
}

void wire_free (struct wire *w)
{
    free (w->bytes);
    *w = (struct wire){0};
}

static void put_varint (struct wire *w, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    do {
        b[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    put (w, b, n);
}

static void put_bytes (struct wire *w, uint32_t id, const void *bytes, size_t len)
{
    put_varint (w, (uint64_t)id << 3 | 2);
    put_varint (w, len);
    put (w, bytes, len);
}

static void put_number (struct wire *w, const ProtobufCFieldDescriptor *f, uint64_t v)
{
    double d = (double)(int64_t)v;
    switch (f->type) {
    case PROTOBUF_C_TYPE_DOUBLE:
        put_varint (w, (uint64_t)f->id << 3 | 1);
        put (w, &d, 8);
        break;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_varint (w, (uint64_t)f->id << 3 | 1);
        put (w, &v, 8);
        break;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
        put_varint (w, (uint64_t)f->id << 3);
        put_varint (w, v << 1 ^ -(v >> 63));
        break;
    default:
        put_varint (w, (uint64_t)f->id << 3);
        put_varint (w, v);
    }
}

static bool is (const ProtobufCFieldDescriptor *f, const char *name)
{
    return strcmp (f->name, name) == 0;
}

static bool ends (const ProtobufCFieldDescriptor *f, const char *with)
{
    size_t n = strlen (f->name), m = strlen (with);
    return n >= m && strcmp (f->name + n - m, with) == 0;
}

static bool is_envelope (const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_MESSAGE &&
           f->descriptor == &nui__common__v1__envelope__descriptor;
}

/* ---- what the world has, by the names of fields */

static const struct {
    const char *field, *text[4];
} known[] = {
    {"grid_job_id", {"grid.1", "grid.2", "grid.77", "alpha.1"}},
    {"job_id", {"alpha.1", "alpha.2", "grid.1", "3"}},
    {"site_job_id", {"alpha.1", "alpha.2", "alpha.3", "alpha.9"}},
    {"component", {"main", "other", "c0", ""}},
    {"site", {"alpha", "beta", "nowhere", ""}},
    {"sites", {"alpha", "beta", "nowhere", "alpha"}},
    {"node", {"alpha0001", "alpha0002", "nowhere", ""}},
    {"partition", {"", "DEFAULT", "x", ""}},
    {"group", {"", "games", "x", ""}},
    {"allocation_id", {"alloc.4", "alloc.5", "alloc.999", ""}},
    {"grant_id", {"", "grant.1", "x", ""}},
    {"object", {"account:phys", "rate:alpha", "user:nui://test/user/alice", "x"}},
    {"funder", {"", "nsf", "x", ""}},
    {"parent", {"", "physics", "x", ""}},
    {"licence", {"", "cad", "x", ""}},
    {"identity", {"nui://test/user/alice", "nui://test/user/bob", "nui://other/user/eve", "ANY"}},
    {"submitter", {"nui://test/user/alice", "nui://test/user/bob", "nui://test/operator/op", ""}},
    {"user", {"nui://test/user/alice", "games", "nobody", "nui://test/user/bob"}},
    {"users", {"nui://test/user/alice", "games", "alice", "MEMBERS"}},
    {"account", {"phys", "rich", "games", ""}},
    {"mark", {"0123456789abcdef", "0123456789abcdef", "fedcba9876543210", "x"}},
    {"project", {"physics", "chemistry", "", "nowhere"}},
    {"grid", {"test", "test", "other", "test"}},
    {"hold_id", {"hold.1", "hold.2", "hold.99", ""}},
    {"stream", {"stdout", "stderr", "", "core"}},
    {"attribute", {"wclimit", "qos", "state", "features"}},
    {"value", {"1:00:00", "drained", "+a,-b", "high"}},
    {"line",
     {"RESERVATIONDEPTH[0] 2", "BACKFILLPOLICY NONE", "ADMIN1 games", "USERCFG[games] MAXJOB=3"}},
    {"kind", {"user", "afterok", "site", "beforeany"}},
    {"hosts", {"alpha[01-04]", "alpha01,alpha02", "alpha01!alpha02", "n[1-1000000]"}},
    {"expression", {"ALL", "alpha[01-02]", "TASKS==4", "TASKS>=2"}},
    {"resources", {"PROCS:1", "PROCS:-1", "PROCS:1,MEM:512", "MEM:1"}},
    {"holds", {"User", "User", "System", ""}},
    {"set", {"User", "System", "Batch", "Defer"}},
    {"clear", {"User", "System", "Batch", "All"}},
    {"flags", {"PREEMPTEE", "SINGLEUSE", "BYNAME", "NORESTART"}},
    {"url", {"https://example.org/f", "file:///etc/passwd", "s3://bucket/f", "sftp://host/f"}},
    {"path", {"in/data", "out", "../x", "a/b/c"}},
    {"nodeset", {"ONEOF:FEATURE:a:b", "NONE", "ANYOF:FEATURE", "x"}},
    {"node_access", {"SHARED", "SINGLEJOB", "SINGLEUSER", ""}},
    {"role", {"member", "lead", "manager", "auditor"}},
    {"features", {"fast", "slow", "a", "fast"}},
    {"reservation", {"", "games.1", "nowhere", ""}},
    {"name", {"main", "phys", "physics", "other"}},
    {"methods", {"simulation", "limits", "history", "x"}},
    {"by", {"user", "account", "nui://test/user/alice", "x"}},
    {"measure", {"wall", "cpu", "pe", "x"}},
    {"what", {"account", "user", "grant", "x"}},
    {"job_attributes", {"", "PREEMPTEE", "", "x"}},
    {"metascheduler", {"meta", "meta", "third", "meta2"}},
    {"server", {"alpha:1", "beta:1", "", "x"}},
    {"multiplier", {"1", "2", "", "x"}},
    {"prefer", {"earliest", "cheapest", "", "x"}},
    {"on_failure", {"cancel", "continue", "", "x"}},
    {"on_site_loss", {"report", "resubmit", "", "x"}},
    {"class", {"batch", "debug", "", "x"}},
    {"qos", {"high", "", "low", "x"}},
    {"quote_id", {"quote.1", "", "quote.2", "x"}},
    {"charge", {"", "phys:alice", "phys", "x"}},
    {"job_duration", {"<=1:00:00", ">=5", "", "x"}},
    {"job_procs", {"<=8", "==2", "", "x"}},
};

/* What a field's name says about it, looked up once for each field: messages have a hundred thousand of them. */
struct facts {
    const ProtobufCFieldDescriptor *f; /* NULL: free */
    const char *const *text;           /* of known; NULL: none */
    enum { ID_NONE, ID_LOCAL, ID_HOLD, ID_GRID, ID_USER, ID_NAME, ID_KIND, ID_DEPENDS } id;
    bool hash;
    enum { SAYS_NOW, SAYS_LATER, SAYS_BEFORE, SAYS_TOMORROW, SAYS_NUMBER } says;
    uint64_t number;
    enum { LEFT_UNKNOWN, LEFT_IN, LEFT_OUT } left_out[2]; /* with one of each, with many */
};

enum { FACTS = 8192 };

static void number_facts (struct facts *facts)
{
    const ProtobufCFieldDescriptor *f = facts->f;
    facts->says = SAYS_NUMBER;
    if (is (f, "created_us"))
        facts->says = SAYS_NOW;
    else if (ends (f, "expires_us") || is (f, "slot_start_us") || is (f, "end_us") ||
             is (f, "until_us"))
        facts->says = SAYS_LATER;
    else if (is (f, "start_us") || is (f, "valid_from_us"))
        facts->says = SAYS_BEFORE;
    else if (is (f, "valid_to_us"))
        facts->says = SAYS_TOMORROW;
    else if (is (f, "walltime_us"))
        facts->number = 600 * US_PER_S;
    else if (is (f, "lease_us"))
        facts->number = 5 * US_PER_S;
    else
        facts->number = !(is (f, "shape") || is (f, "epoch") || is (f, "sequence") ||
                          is (f, "act") || ends (f, "_us"));
}

static struct facts *facts_of (const ProtobufCFieldDescriptor *f)
{
    static struct facts table[FACTS];
    size_t at = ((uintptr_t)f / sizeof *f) % FACTS;
    while (table[at].f && table[at].f != f)
        at = (at + 1) % FACTS;
    struct facts *facts = &table[at];
    if (facts->f)
        return facts;
    facts->f = f;
    for (size_t i = 0; i < sizeof known / sizeof *known && !facts->text; i++)
        if (is (f, known[i].field))
            facts->text = known[i].text;
    facts->id = is (f, "job_id") || is (f, "site_job_id") ? ID_LOCAL
                : is (f, "hold_id")                       ? ID_HOLD
                : is (f, "grid_job_id")                   ? ID_GRID
                : is (f, "user") || is (f, "users")       ? ID_USER
                : is (f, "name") || is (f, "type")        ? ID_NAME
                : is (f, "kind")                          ? ID_KIND
                : is (f, "depends")                       ? ID_DEPENDS
                                                          : ID_NONE;
    facts->hash = ends (f, "hash") || is (f, "secret") || is (f, "mac") || is (f, "sha256");
    number_facts (facts);
    return facts;
}

static const char *known_text (const ProtobufCFieldDescriptor *f, unsigned which)
{
    const char *const *text = facts_of (f)->text;
    return text ? text[which % 4] : which % 2 ? "" : "alpha";
}

/* Of a run that known_text names: what nui-supervise reads. */
static void known_spec (struct wire *w, const ProtobufCFieldDescriptor *f, uint64_t number)
{
    char spec[256];
    int len =
        snprintf (spec, sizeof spec,
                  "job_id=alpha.%d%cmark=0123456789abcdef%caccount=games%cwalltime_us=60000000%c"
                  "env=HERE=/jobs/alpha.1/work%cscript=/jobs/alpha.1/work/script",
                  1 + (int)(number % 2), 0, 0, 0, 0, 0);
    put_bytes (w, f->id, spec, (size_t)len + 1);
}

/* 16 bytes, few different ones, so that the same comes again. */
static void known_bytes (struct wire *w, const ProtobufCFieldDescriptor *f, uint64_t number)
{
    uint8_t b[32] = {0};
    if (is (f, "spec")) {
        known_spec (w, f, number);
        return;
    }
    memcpy (b, &number, sizeof number);
    b[15] = 1;
    put_bytes (w, f->id, b, facts_of (f)->hash ? 32 : 16);
}

static uint64_t known_number (const ProtobufCFieldDescriptor *f)
{
    const struct facts *facts = facts_of (f);
    switch (facts->says) {
    case SAYS_NOW:
        return (uint64_t)clock_now_us ();
    case SAYS_LATER:
        return (uint64_t)(clock_now_us () + 3600 * US_PER_S);
    case SAYS_BEFORE:
        return (uint64_t)(clock_now_us () - 60 * US_PER_S);
    case SAYS_TOMORROW:
        return (uint64_t)(clock_now_us () + 86400 * US_PER_S);
    default:
        return facts->number;
    }
}

/* ---- signed jobs */

void wire_sign (struct wire *out, struct tlsid *signer, const uint8_t *body, size_t len)
{
    Nui__Common__V1__Envelope *e = NULL;
    struct err err = {0};
    if (envelope_sign (signer, body, len, &e, &err) !=
        0) { /* too large to be signed: as it would come all the same */
        ProtobufCFieldDescriptor f = {.id = 1};
        put_bytes (out, f.id, body, len);
        return;
    }
    size_t n = nui__common__v1__envelope__get_packed_size (e);
    uint8_t *bytes = malloc (n);
    if (!bytes)
        abort ();
    nui__common__v1__envelope__pack (e, bytes);
    put (out, bytes, n);
    free (bytes);
    envelope_free (e);
}

/* A job that is in order, to which more may be appended: of a message the last word counts. */
static void job_begin (struct wire *job, const struct wire_signers *signers, uint64_t number,
                       bool component)
{
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component c = NUI__COMMON__V1__COMPONENT__INIT, *components[] = {&c};
    Nui__Common__V1__Req r = NUI__COMMON__V1__REQ__INIT, *reqs[] = {&r};
    uint8_t uuid[16] = {0};
    char *sites[] = {(char *)(uintptr_t)signers->site};
    memcpy (uuid, &number, sizeof number);
    m.grid = (char *)(uintptr_t) "test";
    m.submitter = (char *)(uintptr_t) "nui://test/user/alice";
    m.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    m.created_us = clock_now_us ();
    m.expires_us = m.created_us + 3600 * US_PER_S;
    m.account = (char *)(uintptr_t) "phys";
    m.cost_any = true;
    c.name = (char *)(uintptr_t) "main";
    c.walltime_us = 600 * US_PER_S;
    c.reqs = reqs;
    c.n_reqs = 1;
    r.tasks = 1;
    c.sites = sites;
    c.n_sites = signers->site ? 1 : 0;
    c.script = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "exit 0\n"};
    m.components = components;
    m.n_components = component;
    uint8_t bytes[512];
    assert (nui__common__v1__job__get_packed_size (&m) <= sizeof bytes);
    put (job, bytes, nui__common__v1__job__pack (&m, bytes));
}

/* ---- drawn */

uint8_t wire_byte (struct wire_source *src)
{
    if (src->left == 0)
        return 0;
    src->left--;
    return *src->p++;
}

static uint64_t draw_number (struct wire_source *src, const ProtobufCFieldDescriptor *f)
{
    uint8_t c = wire_byte (src), x = wire_byte (src);
    uint64_t v = 0;
    if (f->type == PROTOBUF_C_TYPE_BOOL)
        return c & 1;
    if (f->type == PROTOBUF_C_TYPE_ENUM)
        return c % 12;
    switch (c % 8) {
    case 0:
        return known_number (f);
    case 1:
        return x;
    case 2:
        return (uint64_t)(clock_now_us () + ((int64_t)x - 64) * 60 * US_PER_S);
    case 3:
        return INT64_MAX - x;
    case 4:
        return (uint64_t) - (int64_t)x;
    case 5:
        return UINT64_C (1) << x % 64;
    case 6:
        return (uint64_t)x * US_PER_S;
    default:
        for (int i = 0; i < 8; i++)
            v = v << 8 | wire_byte (src);
        return v;
    }
}

static void draw_text (struct wire *out, struct wire_source *src, const ProtobufCFieldDescriptor *f)
{
    uint8_t c = wire_byte (src);
    char text[4200];
    size_t len = 0;
    if (c < 176) {
        const char *word = known_text (f, c);
        put_bytes (out, f->id, word, strlen (word));
        return;
    }
    if (c < 192) { /* hosts, names in rows */
        len = (size_t)snprintf (text, sizeof text, "alpha[%u-%u]%s", wire_byte (src),
                                wire_byte (src) * 5000u, c & 1 ? ",beta" : "");
    } else if (c < 208) {
        size_t unit = 1 + wire_byte (src) % 6;
        char row[6];
        for (size_t i = 0; i < unit; i++)
            row[i] = (char)(32 + wire_byte (src) % 95);
        for (size_t want = (size_t)wire_byte (src) * 16;
             len + unit < want && len + unit < sizeof text; len += unit)
            memcpy (text + len, row, unit);
    } else {
        for (size_t want = wire_byte (src) % 48; len < want; len++) {
            uint8_t b = wire_byte (src);
            text[len] = (char)(c < 248 ? 32 + b % 95 : b); /* seldom what is no text */
        }
    }
    put_bytes (out, f->id, text, len);
}

static void draw_bytes (struct wire *out, struct wire_source *src,
                        const ProtobufCFieldDescriptor *f)
{
    uint8_t c = wire_byte (src), text[256];
    size_t len = 0;
    if (c < 224) {
        known_bytes (out, f, c % UUIDS);
        return;
    }
    for (size_t want = wire_byte (src); len < want && src->left; len++)
        text[len] = wire_byte (src);
    put_bytes (out, f->id, text, len);
}

static void draw_message (struct wire *out, const ProtobufCMessageDescriptor *d,
                          struct wire_source *src, unsigned depth);

static void draw_delegation (struct wire *envelope, const uint8_t *body, size_t len,
                             struct wire_source *src)
{
    Nui__Common__V1__Envelope e = NUI__COMMON__V1__ENVELOPE__INIT;
    ProtobufCBinaryData bytes = {0, NULL};
    struct err err = {0};
    e.body = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)body};
    if (delegation_make (src->signers->alice, &e, "nui://test/meta/meta", clock_now_us (),
                         (1 + wire_byte (src)) * 60 * US_PER_S, &bytes, &err) == 0)
        put_bytes (envelope, 4, bytes.data, bytes.len);
    free (bytes.data);
}

static void draw_envelope (struct wire *out, struct wire_source *src, unsigned depth)
{
    uint8_t c = wire_byte (src);
    struct wire job = {0};
    if (c % 8 == 7) {
        draw_message (out, &nui__common__v1__envelope__descriptor, src, depth);
        return;
    }
    job_begin (&job, src->signers, wire_byte (src) % UUIDS, !(c & 64));
    if (c & 128)
        draw_message (&job, &nui__common__v1__job__descriptor, src, depth);
    if (c % 8 == 6)
        put_bytes (out, 1, job.bytes, job.len);
    else
        wire_sign (out, c % 8 == 5 ? src->signers->bob : src->signers->alice, job.bytes, job.len);
    if (c & 32)
        draw_delegation (out, job.bytes, job.len, src);
    if (c & 16) {
        struct wire given = {0};
        draw_message (&given, &nui__common__v1__hand_over__descriptor, src, depth);
        put_bytes (out, 5, given.bytes, given.len);
        wire_free (&given);
    }
    wire_free (&job);
}

static void draw_field (struct wire *out, const ProtobufCFieldDescriptor *f,
                        struct wire_source *src, unsigned depth)
{
    struct wire inner = {0};
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        draw_text (out, src, f);
    } else if (f->type == PROTOBUF_C_TYPE_BYTES) {
        draw_bytes (out, src, f);
    } else if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
        put_number (out, f, draw_number (src, f));
    } else {
        if (is_envelope (f))
            draw_envelope (&inner, src, depth + 1);
        else
            draw_message (&inner, f->descriptor, src, depth + 1);
        put_bytes (out, f->id, inner.bytes, inner.len);
        wire_free (&inner);
    }
}

/* One byte for each field: left out, as known, drawn; of a repeated one how often. */
static void draw_message (struct wire *out, const ProtobufCMessageDescriptor *d,
                          struct wire_source *src, unsigned depth)
{
    for (unsigned i = 0; i < d->n_fields && depth < DEPTH_MAX && src->left; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        uint8_t c = wire_byte (src);
        if (c == 0)
            continue;
        unsigned times = f->label == PROTOBUF_C_LABEL_REPEATED ? c % 4 : 1;
        size_t begin = out->len;
        for (unsigned k = 0; k < times; k++)
            draw_field (out, f, src, depth);
        if (f->label == PROTOBUF_C_LABEL_REPEATED && c == 255 &&
            out->len > begin) { /* the last again and again */
            size_t row = out->len - begin;
            uint8_t *copy = malloc (row);
            if (!copy)
                abort ();
            memcpy (copy, out->bytes + begin, row);
            for (unsigned k = 0; k < MANY && out->len + row < DRAWN_MAX; k++)
                put (out, copy, row);
            free (copy);
        }
    }
}

void wire_draw (struct wire *out, const ProtobufCMessageDescriptor *d, struct wire_source *src)
{
    draw_message (out, d, src, 0);
}

/* ---- plain, large, full */

/* How a message is to be made; `at` counts down to the field that grows. */
struct shape {
    const struct wire_signers *signers;
    uint64_t number;
    int at; /* < 0: none grows (any more) */
    unsigned style;
    size_t most;   /* for the field that grows */
    unsigned each; /* of what is repeated, where everything is */
    unsigned nth;  /* which element of a repeated one this is, for its names */
    bool depends;  /* inside a job's dependencies */
    bool found;
    char *name;
    char path[WIRE_NAME_MAX];
};

static void shape_message (struct wire *out, const ProtobufCMessageDescriptor *d, struct shape *s,
                           unsigned depth);

static void shape_field (struct wire *out, const ProtobufCFieldDescriptor *f, struct shape *s,
                         unsigned depth, unsigned element)
{
    struct wire inner = {0};
    char text[40];
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *word = known_text (f, 0);
        char id[40];
        switch (facts_of (f)->id) {
        case ID_LOCAL:
        case ID_HOLD:
            snprintf (id, sizeof id, "%s%u", facts_of (f)->id == ID_HOLD ? "hold." : "alpha.",
                      1 + (unsigned)(s->number % 500));
            word = id;
            break;
        case ID_GRID:
            snprintf (id, sizeof id, "grid.%u",
                      s->signers->grid_jobs ? 3 + 4 * (unsigned)(s->number % s->signers->grid_jobs)
                                            : 10000 + (unsigned)s->number);
            word = id;
            break;
        case ID_USER:
            word = s->signers->local ? "games" : word;
            break;
        case ID_KIND:
            word = s->depends ? "afterok" : word;
            break;
        default:
            break;
        }
        unsigned n = element ? element : facts_of (f)->id == ID_NAME ? s->nth : 0;
        if (n) {
            snprintf (text, sizeof text, "%.20s%u", word, n);
            word = text;
        }
        put_bytes (out, f->id, word, strlen (word));
    } else if (f->type == PROTOBUF_C_TYPE_BYTES) {
        known_bytes (out, f, s->number + element);
    } else if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
        put_number (out, f,
                    f->type == PROTOBUF_C_TYPE_ENUM || f->type == PROTOBUF_C_TYPE_BOOL
                        ? 0
                        : known_number (f) + element);
    } else if (is_envelope (f)) {
        struct wire job = {0};
        size_t most = s->most;
        if (s->most > JOB_MAX)
            s->most = JOB_MAX; /* more is not signed */
        job_begin (&job, s->signers, s->number, false);
        shape_message (&job, &nui__common__v1__job__descriptor, s, depth + 1);
        s->most = most;
        wire_sign (&inner, s->signers->alice, job.bytes, job.len);
        put_bytes (out, f->id, inner.bytes, inner.len);
        wire_free (&job);
    } else {
        unsigned nth = s->nth;
        s->nth = element;
        shape_message (&inner, f->descriptor, s, depth + 1);
        s->nth = nth;
        put_bytes (out, f->id, inner.bytes, inner.len);
    }
    wire_free (&inner);
}

static const char *const rows[WIRE_STYLES] = {"a",    "n[1-1048570],", "alpha01,",
                                              "a,b,", "x=1:",          "[[(*"};

/* One field as large as may be: a text of one row, or as many elements as there is room for. */
static void shape_grow (struct wire *out, const ProtobufCFieldDescriptor *f, struct shape *s,
                        unsigned depth)
{
    size_t begin = out->len;
    s->found = true;
    snprintf (s->name, WIRE_NAME_MAX, "%s%s", s->path, f->name);
    s->at = -1;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        size_t unit = strlen (rows[s->style]), len = s->most / unit * unit;
        char *text = malloc (len + 1);
        if (!text)
            abort ();
        for (size_t i = 0; i < len; i += unit)
            memcpy (text + i, rows[s->style], unit);
        put_bytes (out, f->id, text, s->style == 1 && len > 12 ? len - 1 : len);
        free (text);
        return;
    }
    for (unsigned n = 1; out->len - begin < s->most; n++) {
        size_t before = out->len;
        if (s->style == 1 &&
            (f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING))
            put_bytes (out, f->id, NULL, 0); /* empty ones: as many as may be */
        else if (s->style == 2)
            shape_field (out, f, s, depth, 0); /* the same again */
        else
            shape_field (out, f, s, depth, n);
        if (out->len - begin > s->most) {
            out->len = before;
            break;
        }
    }
}

static bool grows (const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED || f->type == PROTOBUF_C_TYPE_STRING ||
           f->type == PROTOBUF_C_TYPE_BYTES;
}

/* Components have names of their own, and one site, one req; what only some may have is left out. */
static bool is_left_out (const ProtobufCFieldDescriptor *f, const ProtobufCMessageDescriptor *d,
                         bool each)
{
    bool job = d == &nui__common__v1__job__descriptor;
    if (d == &nui__common__v1__component__descriptor)
        return each
                   ? is (f, "reservation") || is (f, "hosts") || is (f, "class") || is (f, "qos") ||
                         is (f, "nodeset") || is (f, "node_access") || is (f, "partitions")
                   : !is (f, "name") && !is (f, "reqs") && !is (f, "walltime_us") &&
                         !is (f, "script") && !is (f, "sites");
    return job ? !is (f, "components") && !(each && is (f, "flags"))
               : d == &nui__common__v1__envelope__descriptor || is (f, "gres") || is (f, "nodes") ||
                     is (f, "liked") ||
                     (d == &nui__common__v1__req__descriptor && !is (f, "tasks") && !each);
}

static bool left_out (const ProtobufCFieldDescriptor *f, const ProtobufCMessageDescriptor *d,
                      const struct shape *s)
{
    struct facts *facts = facts_of (f);
    if (facts->left_out[s->each > 0] == LEFT_UNKNOWN)
        facts->left_out[s->each > 0] = is_left_out (f, d, s->each > 0) ? LEFT_OUT : LEFT_IN;
    return facts->left_out[s->each > 0] == LEFT_OUT;
}

static void shape_message (struct wire *out, const ProtobufCMessageDescriptor *d, struct shape *s,
                           unsigned depth)
{
    size_t path = strlen (s->path);
    if (depth >= DEPTH_MAX)
        return;
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        bool mine = s->at >= 0 && grows (f) && s->at-- == 0, depends = s->depends;
        s->depends = depends || facts_of (f)->id == ID_DEPENDS;
        if (mine) {
            shape_grow (out, f, s, depth);
        } else if (s->at >= 0 && f->type == PROTOBUF_C_TYPE_MESSAGE) {
            snprintf (s->path + path, sizeof s->path - path, "%s.", f->name);
            shape_field (out, f, s, depth, 0); /* perhaps in it */
        } else if (!left_out (f, d, s)) {
            unsigned times = f->label == PROTOBUF_C_LABEL_REPEATED && s->each ? s->each : 1;
            for (unsigned n = 0; n < times; n++)
                shape_field (out, f, s, depth, n);
        }
        s->depends = depends;
        s->path[path] = '\0';
    }
}

void wire_wide (struct wire *out, const ProtobufCMessageDescriptor *d)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        if (f->type == PROTOBUF_C_TYPE_BOOL && f->label != PROTOBUF_C_LABEL_REPEATED)
            put_number (out, f, 1);
        else if (is (f, "limit"))
            put_number (out, f, 1000000);
    }
}

void wire_plain (struct wire *out, const ProtobufCMessageDescriptor *d,
                 const struct wire_signers *signers, uint64_t number)
{
    struct shape s = {.signers = signers, .number = number, .at = -1};
    shape_message (out, d, &s, 0);
}

bool wire_large (struct wire *out, const ProtobufCMessageDescriptor *d,
                 const struct wire_signers *signers, uint64_t number, unsigned field,
                 unsigned style, size_t most, char name_out[WIRE_NAME_MAX])
{
    struct shape s = {.signers = signers,
                      .number = number,
                      .at = (int)field,
                      .style = style,
                      .most = most,
                      .name = name_out};
    shape_message (out, d, &s, 0);
    return s.found;
}

void wire_full (struct wire *out, const ProtobufCMessageDescriptor *d,
                const struct wire_signers *signers, uint64_t number, unsigned each, size_t most)
{
    for (; each > 0; each /= 2) {
        struct shape s = {.signers = signers, .number = number, .at = -1, .each = each};
        out->len = 0;
        shape_message (out, d, &s, 0);
        if (out->len <= most)
            return;
    }
}
