/* wire: requests as bytes, made from protobuf-c's descriptors, so that whatever is drawn is a message of its type.
 *
 * Envelopes get a job that is made the same way and is really signed. Texts that name something (a job, a site, an
 * account …) are taken from what the world has, by the field's name, often enough to get past the first look. */
#ifndef NUI_TESTS_FUZZ_WIRE_H
#define NUI_TESTS_FUZZ_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/quantity.h"
#include "proto/rpc/tlsid.h"

struct wire {
    uint8_t *bytes;
    size_t len, cap;
};
void wire_free (struct wire *wire);

/* Whose hand signs. */
struct wire_signers {
    struct tlsid *alice, *bob;
    const char *site;   /* whose jobs they are to be: the first name of a component's list */
    bool local;         /* users are accounts of a machine */
    unsigned grid_jobs; /* so many jobs of the grid are known; 0: each has a new id */
};

/* Drawn from the input, which it consumes; when that is over nothing more is added. */
struct wire_source {
    const uint8_t *p;
    size_t left;
    const struct wire_signers *signers;
};
uint8_t wire_byte (struct wire_source *src); /* 0 when it is over */
void wire_draw (struct wire *out, const ProtobufCMessageDescriptor *d, struct wire_source *src);

/* Every field once, as the world knows it; job ids and keys by `number`. */
void wire_plain (struct wire *out, const ProtobufCMessageDescriptor *d,
                 const struct wire_signers *signers, uint64_t number);

/* What asks for as much as there is: yes to everything, no limit, and nothing named. */
void wire_wide (struct wire *out, const ProtobufCMessageDescriptor *d);

/* The largest of one kind: as wire_plain, with one field (the `field`-th that can grow, counted through nested
 * messages and signed jobs) as large as `most` bytes allow, in one of WIRE_STYLES ways. Returns false when there is no
 * such field; name_out says which it is ("envelope.components.env"). */
enum { WIRE_STYLES = 6, WIRE_NAME_MAX = 160 };
bool wire_large (struct wire *out, const ProtobufCMessageDescriptor *d,
                 const struct wire_signers *signers, uint64_t number, unsigned field,
                 unsigned style, size_t most, char name_out[WIRE_NAME_MAX]);
/* Everything that can be repeated, `each` times, through all levels; what is longer than `most` is left out. */
void wire_full (struct wire *out, const ProtobufCMessageDescriptor *d,
                const struct wire_signers *signers, uint64_t number, unsigned each, size_t most);

/* The envelope's bytes around a job's; alice's signature. */
void wire_sign (struct wire *out, struct tlsid *signer, const uint8_t *body, size_t len);

#endif
