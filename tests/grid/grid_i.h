/* What grid.c (programs, worlds), invariants.c and users.c share. */
#ifndef NUI_TESTS_GRID_GRID_I_H
#define NUI_TESTS_GRID_GRID_I_H

#include "grid.h"

#include "local/svc/job.h"
#include "local/svc/nodes.h"

enum { PLACED_MAX = 2048, ANSWERS_MAX = 4096 };

/* A user's job. */
struct ujob {
    uint8_t uuid[16];
    Nui__Common__V1__Envelope *envelope;
    uint32_t parts, licences;
    char meta[16], id[64], reason[256];
    uint32_t
        before; /* of an array: so many of it stand before it in w.job; the first is the one that is submitted */
    uint32_t array;  /* … and the first: how many it has; 0: a job by itself */
    uint32_t limit;  /* … and how many of it may run at one time; 0: any number */
    uint32_t unsure; /* members of a group that may have taken it, as bits */
    bool over, cancel, cancelled, asking, resubmit, reserve,
        stays;                              /* stays: does not ask another member */
    Nui__Meta__V1__GridJobState state, end; /* as told last; the end that was told, by whomever */
    uint32_t launches, attempts;
    uint32_t running;
    uint8_t txn[16]; /* that runs */
    bool ended_well[GRID_PARTS_MAX];
    struct todo next;
    Nui__Common__V1__Envelope
        *terms; /* other ones, of a co-reservation; NULL: none were asked for */
    int changed;
    struct todo terms_next;
};

/* Something that a site gave to its runner. */
struct placed {
    struct machine *site;
    char site_job_id[96];
    uint32_t job, part;
    bool coallocated;
    uint8_t txn[16];
    bool launched, ended;
};

/* What a site has answered about a part. */
struct answers {
    struct machine *site;
    uint8_t txn[16];
    char component[64];
    uint32_t attempt;
    bool firm, not_firm, aborted;
};

struct grid_world {
    struct grid_shape shape;
    struct machine *user;
    struct ujob job[GRID_JOBS_MAX];
    uint32_t job_count;
    struct placed placed[PLACED_MAX];
    uint32_t placed_count;
    struct answers answers[ANSWERS_MAX];
    uint32_t answer_count;
    uint32_t replies[MACHINES_MAX][16];
    time_us steady_at; /* no disk was full since */
    bool clocks_stepped;
};
extern struct grid_world w;

const char *grid_state_name (Nui__Meta__V1__GridJobState state);
/* The service of a site that is up; else NULL. */
struct svc *svc_of (const struct machine *machine);
/* invariants.c: a server's answer leaves; something has happened; all is over. */
void invariants_reply (struct machine *server, const char *method, const ProtobufCMessage *request,
                       const ProtobufCMessage *reply);
void invariants_step (void);
void invariants_end (void);

#endif
