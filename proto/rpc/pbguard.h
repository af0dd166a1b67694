/* pbguard: looks through serialized protobuf before protobuf-c unpacks it. Pure; fuzzed.
 *
 * protobuf-c 1.4 has no recursion limit, no bound on what a message unpacks to (4 MiB of empty
 * submessages become 144 MiB of heap) and no UTF-8 check. One pass over the bytes, no allocation:
 *  - nesting at most PBGUARD_DEPTH_MAX;
 *  - memory after unpacking at most PBGUARD_MEMORY_BASE + PBGUARD_MEMORY_FACTOR * length;
 *  - every string well-formed UTF-8 without NUL (Python's protobuf refuses others);
 *  - wire types that fit the descriptor, no groups;
 *  - of what strangers send, no more fields than FIELDS + length / PBGUARD_BYTES_PER_FIELD: each takes its time to be
 *    unpacked and looked at, and two bytes are enough for one.
 * The same check serves both directions: outgoing messages are looked at after packing, where text
 * that should have been made good on its way in is mended at last, and told in the log. */
#ifndef NUI_RPC_PBGUARD_H
#define NUI_RPC_PBGUARD_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "proto/base/err.h"

enum { PBGUARD_DEPTH_MAX = 32, PBGUARD_MEMORY_BASE = 256 * 1024, PBGUARD_MEMORY_FACTOR = 16 };
enum {
    PBGUARD_FIELDS = 16 * 1024,      /* of a request, of a signed job */
    PBGUARD_FIELDS_MANY = 64 * 1024, /* of one that is a list (rpcrequest.h) */
    PBGUARD_BYTES_PER_FIELD = 64,    /* beyond those */
};

/* ERR_INVALID (malformed, not UTF-8) or ERR_LIMIT; the text names message and field. */
int pbguard_check (const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
                   struct err *err);
/* As pbguard_check, but strings that are no text are made so (text_mend), and *mended_out names the
 * first such field, or is NULL: for what we send, and for what must not be refused as a whole for one
 * bad character. Nothing else is changed. */
int pbguard_mend (const ProtobufCMessageDescriptor *descriptor, void *bytes, size_t len,
                  const char **mended_out, struct err *err);
/* pbguard_check with a bound on fields; ERR_LIMIT where there are more. */
int pbguard_few (const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t len,
                 uint32_t fields, struct err *err);
/* The same, then protobuf_c_message_unpack. With mended_out bad text is mended (pbguard_mend). */
ProtobufCMessage *pbguard_request (const ProtobufCMessageDescriptor *descriptor, void *bytes,
                                   size_t len, uint32_t fields, const char **mended_out,
                                   struct err *err);
/* pbguard_check, then protobuf_c_message_unpack. NULL and err filled on failure. */
ProtobufCMessage *pbguard_unpack (const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                                  size_t len, struct err *err);

#endif
