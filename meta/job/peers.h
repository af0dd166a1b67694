/* peers: the other coordinators of this one's group (METACFG), who is alive, and who may lead.
 *
 * Each tells every other a few times in TAKEOVERTIME that it is alive. Who has not been heard for that
 * long is silent, and its jobs are taken over (lead.h). A coordinator acts on its jobs only
 * while more than half of the group, itself included, has answered it within half of TAKEOVERTIME, by
 * its own monotonic clock from the moment it asked; and nobody promises another what a
 * coordinator leads that is not silent, or in the first TAKEOVERTIME after a start. So two do not act on one
 * job at a time; ballots and epochs shut out what is still under way.
 *
 * A beat also says what the sender has of the receiver's jobs: it is sent what it lacks, or hears who leads them;
 * and the answer which sites the receiver has not heard of (loss.h), and whether it has jobs that are over of which the
 * sender may know nothing (follow.h).
 * metad->peers is NULL where METACFG names nobody: then it always leads. */
#ifndef NUI_META_JOB_PEERS_H
#define NUI_META_JOB_PEERS_H

#include "meta/job/hub.h"

struct peer {
    char name[COALLOC_NAME_MAX];
    struct link *link;         /* NULL: itself */
    bool beating;              /* a beat is under way */
    duration_us sent_mono;     /* when that was sent */
    duration_us heard_mono;    /* its last beat; 0: none in this life */
    duration_us answered_mono; /* when the last beat that it answered was sent; 0: none */
    uint64_t asked;            /* up to which of its jobs it was told what is here */
    uint64_t followed; /* follow.h: up to which place of its list everything is here; as on disk */
    uint64_t behind;   /* up to which it was when this one came back */
    bool following;    /* it is being asked */
    Nui__Meta__V1__BeatReply *reply; /* the last one; NULL: none */
};

struct peers {
    struct metad *metad;
    struct peer member[QUORUM_MEMBERS_MAX]; /* ascending by name; the order is that of ballots */
    uint32_t count, self;
    duration_us takeover;
    bool led;             /* at the last look */
    duration_us led_mono; /* since when */
};

int peers_create (struct metad *metad, struct err *err);
/* Whether the configuration names the same group: it is taken at the start only. */
int peers_check (const struct metad *metad, const struct metad_config *config, struct err *err);
void peers_disconnect (struct metad *metad);
void peers_destroy (struct metad *metad);

/* May act on its jobs now. */
bool peers_lead (const struct metad *metad);
/* UINT32_MAX: no member. */
uint32_t peers_index (const struct peers *peers, const char *name);
/* Which member calls a method of nui.meta.v1.Peers. UINT32_MAX: none, and the call is refused. */
uint32_t peers_caller (const struct metad *metad, struct rpccall *call);
/* For how long nothing was heard of it. */
duration_us peers_silence (const struct peers *peers, const struct peer *peer);
/* Not heard for TAKEOVERTIME; never of itself. */
bool peers_silent (const struct peers *peers, const char *name);
const char *peers_self (const struct peers *peers);
/* Has heard of everything that those have that answer: it was not away lately. */
bool peers_knows (const struct metad *metad);
/* Of a job that is not here: ERR_UNAVAILABLE, and why, where it may be the group's all the same. */
int peers_unsure (const struct metad *metad, uint64_t number, struct err *err);
/* Oneself, or another of the group; by name, or by what a site says of who did something (an identity). */
bool peers_is_us (const struct metad *metad, const char *name);
/* For how long more than half of the group, as far as that is certain, have not heard of a site;
 * own: for how long this one has not. */
duration_us peers_site_silent (const struct peers *peers, const char *site, duration_us own);

#endif
