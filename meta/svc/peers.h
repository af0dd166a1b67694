/* peers: the other coordinators of this one's group (METACFG), who is alive, and who leads.
 *
 * Each tells every other a few times in TAKEOVERTIME that it is alive. Who has not been heard for that
 * long is silent, and what it had decided is taken over. A coordinator acts on its co-allocations only
 * while more than half of the group, itself included, has answered it within half of TAKEOVERTIME, by
 * its own monotonic clock from the moment it asked; and nobody gives a vote to another for what a
 * coordinator leads that is not silent, or in the first TAKEOVERTIME after a start. So two never lead one
 * transaction at a time; epochs fence at the sites what is still under way.
 *
 * An answer to a beat names what of the asker's another leads now: before it may act again it knows.
 * metad->peers is NULL where METACFG names nobody: then it always leads. */
#ifndef NUI_META_SVC_PEERS_H
#define NUI_META_SVC_PEERS_H

#include "meta/svc/metad.h"

enum { PEER_KNOWN_MAX = 64 };

struct peer {
    char name[COALLOC_NAME_MAX];
    struct link *link;          /* NULL: itself */
    bool beating;               /* a beat is under way */
    duration_us sent_mono;      /* when that was sent */
    duration_us heard_mono;     /* its last beat; 0: none in this life */
    duration_us answered_mono;  /* when the last beat that it answered was sent; 0: none */
    uint8_t asked[16];          /* up to which of its transactions it was asked about */
    uint64_t known[PEER_KNOWN_MAX]; /* our jobs whose end, as it told it, is on disk */
    uint32_t known_count;
};

struct peers {
    struct metad *metad;
    struct peer member[QUORUM_MEMBERS_MAX]; /* ascending by name; the order is that of ballots */
    uint32_t count, self;
    duration_us takeover;
    bool led;                   /* at the last look, for the log */
    bool orphans;               /* votes that we lead may have no job: look */
    uint64_t ticks;
    struct event *timer;
    struct proposal *proposals; /* decide.c */
};

int peers_create (struct metad *metad, struct err *err);
int peers_serve (struct metad *metad, struct rpcserver *server, struct err *err);
/* Whether the configuration names the same group: it is taken at the start only. */
int peers_check (const struct metad *metad, const struct metad_config *config, struct err *err);
void peers_disconnect (struct metad *metad);
void peers_destroy (struct metad *metad);

/* May act on co-allocations now. */
bool peers_lead (const struct metad *metad);
/* UINT32_MAX: no member. */
uint32_t peers_index (const struct peers *peers, const char *name);
/* Not heard for TAKEOVERTIME; never of itself. */
bool peers_silent (const struct peers *peers, const char *name);
const char *peers_self (const struct peers *peers);

#endif
