/* gatedeleg: what a user lets a gate (nui-gate, the REST front door) do in his name.
 *
 * A gate's own certificate opens nothing. With each call it brings the user's delegation, in the header
 * "nui-delegation-bin"; whoever is called checks it (rpcserver does, for every service) and serves the user, with the
 * methods that are open to gates at all (RPC_GATE_READ, RPC_GATE_CHANGE). A job that the user has not signed himself is
 * signed with the gate's key and carries the delegation (Envelope.gate_delegation): envelope_verify then says that the
 * user signed it, if it is within the bounds.
 *
 * The sum is bounded, too: a job's uuid is the delegation's series and a number below jobs_max, and the bank pays one
 * signed job for each uuid, for at most its cost_max. So a gate that was broken into costs at most
 * jobs_max * cost_max_micro, at the named accounts, until expires_us.
 *
 * It is shown by who uses it with a secret of which it has the hash, so that sites and metaschedulers, who see
 * delegations, cannot use them at the gate. */
#ifndef NUI_RPC_GATEDELEG_H
#define NUI_RPC_GATEDELEG_H

#include <stdbool.h>

#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/rpc/tlsid.h"

#define GATEDELEG_DOMAIN "nui-gate-delegation-v1"
#define GATEDELEG_HEADER "nui-delegation-bin"
#define GATEDELEG_MAX_US (7 * 86400 * US_PER_S)
enum {
    GATEDELEG_SERIES = 12,
    GATEDELEG_BYTES_MAX = 9 << 10, /* fits a request's headers as base64 */
    GATEDELEG_JOBS_MAX = 100000,
    GATEDELEG_NAMES_MAX = 64, /* of accounts, of sites */
};

typedef Nui__Common__V1__GateDelegation GateDelegation;

/* Signed by a user as signer is; says what *what says, with grid, series and both moments filled in. *out is malloc'ed. */
int gatedeleg_make (struct tlsid *signer, const GateDelegation *what, time_us now,
                    duration_us length, ProtobufCBinaryData *out, struct err *err);

/* Whether it is a user's, for that gate, and in force at the moment. NULL with err; else freed with
 * nui__common__v1__gate_delegation__free_unpacked. */
GateDelegation *gatedeleg_open (struct tlsid *id, const ProtobufCBinaryData *bytes,
                                const struct principal *gate, time_us at,
                                struct principal *user_out, struct err *err);

/* Of a job that this gate signed: whether its user let it. ERR_UNAUTHENTIC with the bound that it passes. received: when
 * somebody trusted had both (receipt.h), and since when the user's certificate may have ended; 0: it may not. */
int gatedeleg_job (struct tlsid *id, const Nui__Common__V1__Envelope *envelope,
                   const struct principal *gate, time_us at, time_us received,
                   struct principal *user_out, struct err *err);

/* Headers that were found good lately (a minute at most), by digest. */
struct gatememo;
struct gatememo *gatememo_create (void); /* NULL when out of memory */
void gatememo_destroy (struct gatememo *memo);
void gatememo_forget (
    struct gatememo *memo); /* after certificates or revocations were loaded anew */
/* header: base64. *change_out: it may change something. */
int gatememo_check (struct gatememo *memo, struct tlsid *id, const char *header, size_t len,
                    const struct principal *gate, time_us now, struct principal *user_out,
                    bool *change_out, struct err *err);

#endif
