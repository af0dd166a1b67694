/* connshare: what one address, principal or local account may have of a server. Pure: no I/O; the
 * caller gives the monotonic time and owns connections and calls.
 *
 * Daemons (site, metascheduler, bank) and root on the local socket may use every place; everybody else
 * leaves `kept` of them free, and has a share: connections per principal or local account and per
 * address, calls per second, streams reset per second, bytes of answers that it does not read. A TLS
 * handshake that is not finished has no place: handshakes have a pot of their own, in which the oldest
 * gives way. Entries stay until their rates have recovered. Cost: one look into a hash per call. */
#ifndef NUI_RPC_CONNSHARE_H
#define NUI_RPC_CONNSHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct connshare_limits {
    uint32_t connections;   /* of the whole server */
    uint32_t per_principal; /* or local account */
    uint32_t per_address;   /* of those that leave places free */
    uint32_t handshakes, handshakes_per_address;
    uint32_t calls_per_s;       /* of one principal; as many more may come at once */
    uint32_t resets_per_s;      /* likewise; thirty times as many at once */
    size_t unread, unread_each; /* bytes of answers, of all and of one principal */
};

struct connshare;
struct connshare_party; /* an address, a principal or a local account */

struct connshare *connshare_create (const struct connshare_limits *limits);
void connshare_destroy (struct connshare *cs); /* parties are gone with it */
void connshare_set_limits (struct connshare *cs, const struct connshare_limits *limits);

/* Finds or makes; never NULL. Held until connshare_leave. */
struct connshare_party *connshare_party (struct connshare *cs, const char *name, duration_us now);
void connshare_leave (struct connshare *cs, struct connshare_party *party);
const char *connshare_name (const struct connshare_party *party);

/* A handshake begins; true when an older one must give way: with *own_out one of this address. */
bool connshare_handshake (struct connshare *cs, struct connshare_party *address, bool *own_out);
void connshare_handshake_over (struct connshare *cs, struct connshare_party *address);

/* A place. address NULL: a local account. ERR_LIMIT names the bound; then nothing is taken. */
int connshare_admit (struct connshare *cs, struct connshare_party *who,
                     struct connshare_party *address, bool trusted, struct err *err);
void connshare_depart (struct connshare *cs, struct connshare_party *who,
                       struct connshare_party *address, bool trusted);

/* One call, one reset: false when it is too many. */
bool connshare_call (struct connshare *cs, struct connshare_party *who, duration_us now);
bool connshare_reset (struct connshare *cs, struct connshare_party *who, duration_us now);

/* Bytes that wait to be read; false, and nothing counted, when that is too many. */
bool connshare_unread_add (struct connshare *cs, struct connshare_party *who, size_t bytes);
void connshare_unread_drop (struct connshare *cs, struct connshare_party *who, size_t bytes);

/* Whether a refusal of this party should be told now: one line a second, *more_out the ones between. */
bool connshare_tell (struct connshare_party *party, duration_us now, uint64_t *more_out);

#endif
