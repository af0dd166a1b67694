/* pbguard: walks a message's bytes by its descriptor with a cursor. Client, server and all who
 * unpack signed bytes call it first: nothing that a peer sent may reach protobuf-c without
 * having passed here. */
#include "proto/rpc/pbguard.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/text.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* What malloc adds per block, and what protobuf-c allocates per unknown field and repeated entry. */
enum { MALLOC_OVERHEAD = 16 };

struct cursor {
    const uint8_t *p;
    size_t left;
};

struct guard {
    uint64_t memory;
    uint64_t memory_max;
    uint64_t fields_left;
    bool mend;          /* the bytes may be changed: bad text is made good */
    const char *mended; /* the first field whose text was */
    struct err *err;
};

static bool varint (struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (c->left == 0)
            return false;
        uint8_t b = *c->p++;
        c->left--;
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool skip (struct cursor *c, uint64_t n)
{
    if (n > c->left)
        return false;
    c->p += n;
    c->left -= n;
    return true;
}

static int charge (struct guard *g, const ProtobufCMessageDescriptor *d, uint64_t bytes)
{
    g->memory += bytes;
    if (g->memory > g->memory_max)
        return err_set (g->err, ERR_LIMIT, "message %s: needs more than %llu bytes of memory",
                        d->name, (unsigned long long)g->memory_max);
    return 0;
}

static int malformed (struct guard *g, const ProtobufCMessageDescriptor *d, const char *field)
{
    return err_set (g->err, ERR_INVALID, "message %s: field %s is malformed", d->name, field);
}

static unsigned wire_of (ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static int check_message (struct guard *g, const ProtobufCMessageDescriptor *d, struct cursor c,
                          unsigned depth);

/* A packed repeated field: elements of one scalar type, back to back. */
static int check_packed (struct guard *g, const ProtobufCMessageDescriptor *d,
                         const ProtobufCFieldDescriptor *f, struct cursor c)
{
    unsigned wire = wire_of (f->type);
    uint64_t unused;

    /* At most one element per byte, of at most 8 bytes. */
    if (charge (g, d, MALLOC_OVERHEAD + (wire == WIRE_VARINT ? 8 * c.left : c.left)) < 0)
        return g->err ? g->err->code : ERR_LIMIT;
    if (wire == WIRE_32 || wire == WIRE_64)
        return c.left % (wire == WIRE_32 ? 4 : 8) == 0 ? 0 : malformed (g, d, f->name);
    if (c.left > g->fields_left)
        return err_set (g->err, ERR_LIMIT, "message %s: too many elements for its length", d->name);
    g->fields_left -= c.left;
    while (c.left > 0) {
        if (!varint (&c, &unused))
            return malformed (g, d, f->name);
    }
    return 0;
}

static int check_bytes (struct guard *g, const ProtobufCMessageDescriptor *d,
                        const ProtobufCFieldDescriptor *f, struct cursor c, unsigned depth)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (depth + 1 > PBGUARD_DEPTH_MAX)
            return err_set (g->err, ERR_LIMIT, "message %s: nested deeper than %d", d->name,
                            PBGUARD_DEPTH_MAX);
        return check_message (g, f->descriptor, c, depth + 1);
    }
    if (f->type == PROTOBUF_C_TYPE_STRING && !text_ok (c.p, c.left)) {
        if (!g->mend)
            return err_set (g->err, ERR_INVALID, "message %s: field %s is not UTF-8 text", d->name,
                            f->name);
        text_mend ((uint8_t *)c.p, c.left);
        g->mended = g->mended ? g->mended : f->name;
    }
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES)
        return charge (g, d, MALLOC_OVERHEAD + c.left + 1);
    return check_packed (g, d, f, c); /* scalars, packed */
}

static int check_field (struct guard *g, const ProtobufCMessageDescriptor *d, struct cursor *c,
                        unsigned depth)
{
    uint64_t tag, n = 0;
    const ProtobufCFieldDescriptor *f;
    struct cursor body;
    unsigned wire;
    int rc;

    if (g->fields_left-- == 0)
        return err_set (g->err, ERR_LIMIT, "message %s: too many fields for its length", d->name);
    if (!varint (c, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return malformed (g, d, "(tag)");
    wire = (unsigned)tag & 7;
    f = protobuf_c_message_descriptor_get_field (d, (unsigned)(tag >> 3));
    body = *c;
    if (wire == WIRE_VARINT) {
        if (!varint (c, &n))
            return malformed (g, d, f ? f->name : "(unknown)");
    } else if (wire == WIRE_64 || wire == WIRE_32) {
        if (!skip (c, wire == WIRE_64 ? 8 : 4))
            return malformed (g, d, f ? f->name : "(unknown)");
    } else if (wire == WIRE_BYTES) {
        if (!varint (c, &n))
            return malformed (g, d, f ? f->name : "(unknown)");
        body = *c;
        if (!skip (c, n))
            return malformed (g, d, f ? f->name : "(unknown)");
        body.left = (size_t)n;
    } else {
        return malformed (g, d, f ? f->name : "(group)");
    }
    if (!f) /* kept by protobuf-c as an unknown field, copied */
        return charge (g, d,
                       sizeof (ProtobufCMessageUnknownField) + MALLOC_OVERHEAD +
                           (size_t)(c->p - body.p) + 10);
    if (f->label == PROTOBUF_C_LABEL_REPEATED &&
        (rc = charge (g, d, 2 * sizeof (void *))) < 0) /* array entry, string slices */
        return rc;
    if (wire == WIRE_BYTES) {
        if (wire_of (f->type) != WIRE_BYTES && f->label != PROTOBUF_C_LABEL_REPEATED)
            return malformed (g, d, f->name);
        return check_bytes (g, d, f, body, depth);
    }
    return wire == wire_of (f->type) ? 0 : malformed (g, d, f->name);
}

static int check_message (struct guard *g, const ProtobufCMessageDescriptor *d, struct cursor c,
                          unsigned depth)
{
    int rc = charge (g, d, d->sizeof_message + MALLOC_OVERHEAD);

    while (rc == 0 && c.left > 0)
        rc = check_field (g, d, &c, depth);
    return rc;
}

/* fields 0: any number. */
static int check_all (struct guard *g, const ProtobufCMessageDescriptor *descriptor,
                      const void *bytes, size_t len, uint32_t fields)
{
    assert (descriptor && (bytes || len == 0));
    g->memory_max = PBGUARD_MEMORY_BASE + (uint64_t)PBGUARD_MEMORY_FACTOR * len;
    g->fields_left = fields ? fields + len / PBGUARD_BYTES_PER_FIELD : UINT64_MAX;
    return check_message (g, descriptor, (struct cursor){bytes, len}, 0);
}

int pbguard_check (const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
                   struct err *err)
{
    struct err local;
    struct guard g = {.err = err ? err : &local};

    return check_all (&g, descriptor, bytes, len, 0);
}

int pbguard_mend (const ProtobufCMessageDescriptor *descriptor, void *bytes, size_t len,
                  const char **mended_out, struct err *err)
{
    struct err local;
    struct guard g = {.err = err ? err : &local, .mend = true};
    int rc = check_all (&g, descriptor, bytes, len, 0);

    *mended_out = g.mended;
    return rc;
}

static ProtobufCMessage *unpack (const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                                 size_t len, struct err *err)
{
    static const uint8_t nothing[1] = {0};
    ProtobufCMessage *message;

    message = protobuf_c_message_unpack (descriptor, NULL, len, bytes ? bytes : nothing);
    if (!message)
        err_set (err, ERR_INVALID, "message %s: cannot be decoded", descriptor->name);
    return message;
}

ProtobufCMessage *pbguard_unpack (const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                                  size_t len, struct err *err)
{
    return pbguard_check (descriptor, bytes, len, err) < 0 ? NULL
                                                           : unpack (descriptor, bytes, len, err);
}

int pbguard_few (const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
                 uint32_t fields, struct err *err)
{
    struct err local;
    struct guard g = {.err = err ? err : &local};

    return check_all (&g, descriptor, bytes, len, fields);
}

ProtobufCMessage *pbguard_request (const ProtobufCMessageDescriptor *descriptor, void *bytes,
                                   size_t len, uint32_t fields, const char **mended_out,
                                   struct err *err)
{
    struct err local;
    struct guard g = {.err = err ? err : &local, .mend = mended_out != NULL};
    int rc = check_all (&g, descriptor, bytes, len, fields);

    if (mended_out)
        *mended_out = g.mended;
    return rc < 0 ? NULL : unpack (descriptor, bytes, len, err);
}
