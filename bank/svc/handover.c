/* Hand-overs: metaschedulers fetch the keys by which they seal them, and a site's hold or charge for a signed job is
 * looked at for one. Where the user has allowed one site only, that is the choice; an operator, and a metascheduler
 * that holds for sites itself (HoldGroup), choose as well. */
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/job/handover.h"

/* So long before a key begins it is given out, so that the bank may be away then. */
#define EARLY (10 * 86400 * US_PER_S)

int handover_right (struct work *work, const Nui__Common__V1__Envelope *envelope,
                    const Nui__Common__V1__Job *job, const uint8_t hash[LEDGER_HASH_BYTES],
                    const Nui__Common__V1__Component *component, const char *site, struct err *err)
{
    const struct principal *peer = rpccall_peer (work->call);
    const uint8_t *secret = committer_secret (work->svc->committer);
    if (peer->kind != PRINCIPAL_SITE ||
        (component->n_sites == 1 && strcmp (component->sites[0], site) == 0))
        return 0;
    if (!secret)
        return err_set (err, ERR_UNAVAILABLE, "the database is not there yet: try again");
    struct handover about = {
        .grid = peer->grid, .site = site, .component = component->name, .uuid = job->uuid};
    memcpy (about.hash, hash, sizeof (about.hash));
    return handover_check (secret, envelope->handover, &about, committer_now (work->svc->committer),
                           err);
}

void handle_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    const struct principal *peer = rpccall_peer (call);
    const uint8_t *secret = committer_secret (svc->committer);
    Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
    Nui__Bank__V1__HandoverKey item[2], *keys[2];
    struct handover_key key[2];
    time_us now = committer_now (svc->committer);
    uint64_t first = handover_number (now),
             count = handover_begins (first + 1) - now < EARLY ? 2 : 1;
    (void)request;
    if (!secret) {
        rpccall_finish (call, RPC_UNAVAILABLE, "the database is not there yet: try again");
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        handover_derive (secret, peer->grid, peer->name, first + i, &key[i]);
        nui__bank__v1__handover_key__init (&item[i]);
        item[i].key = key[i].number;
        item[i].begins_us = handover_begins (key[i].number);
        item[i].ends_us = handover_ends (key[i].number);
        item[i].secret = (ProtobufCBinaryData){sizeof (key[i].bytes), key[i].bytes};
        keys[i] = &item[i];
    }
    reply.keys = keys;
    reply.n_keys = count;
    rpccall_reply (call, &reply.base);
}
