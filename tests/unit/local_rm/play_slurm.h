/* play_slurm: a slurmctld behind fake_slurm, made of what a real one of that version answered (tests/data/slurm).
 *
 * It has the recorded nodes and partitions; jobs come from sbatch (play_sbatch) or through the API, and are started, held,
 * changed and cancelled through it as Slurm does. Each record is a recorded one with other values in its fields, so that
 * it has the shape of its version; what Slurm would not take, for its type or its name, it does not take either, and says
 * so in the recorded words. */
#ifndef NUI_TESTS_LOCAL_RM_PLAY_SLURM_H
#define NUI_TESTS_LOCAL_RM_PLAY_SLURM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/strbuf.h"

struct play_slurm {
    json_t *said; /* recorded: by name, {"status", "answer"} */
    char version[16];
    int number;   /* 44 */
    json_t *jobs; /* records; a job's number is its place and one */
    json_t *nodes, *reservations;
    int64_t changed; /* seconds: something about a job, or a node */
    unsigned busy;   /* so many updates are put off ("Resource temporarily unavailable") */
    bool stuck;      /* what is moved to nui does not start */
    bool surprised;  /* a field of a submission is none that it knows */
    bool down;       /* slurmctld is */
    const char *token_refused; /* "token-bad": all is answered so */
    /* what was asked */
    unsigned whole, unchanged, states, updates, fields, submitted;
    unsigned unknown; /* requests that this version does not have */
    char passed_over[64];
};

/* data: "25.11.2-v0.0.44". Asserts. */
void play_init (struct play_slurm *play, const char *data);
void play_free (struct play_slurm *play);
/* As fake_slurm_fn. */
int play_answer (void *arg, const char *method, const char *path, const char *query,
                 const char *sent, struct strbuf *body);

/* A waiting job of that user's, its number. */
unsigned play_sbatch (struct play_slurm *play, const char *user, unsigned nodes, unsigned tasks);
json_t *play_job (struct play_slurm *play, unsigned number); /* its record; NULL: forgotten */
void play_state (struct play_slurm *play, unsigned number, const char *state); /* "RUNNING" */
/* As the job itself ended: "COMPLETED", "FAILED", "TIMEOUT"; what wait(2) would say. */
void play_ends (struct play_slurm *play, unsigned number, const char *state, int exit_code,
                int signo);
void play_forget (struct play_slurm *play, unsigned number);
/* "idle", "down", or "drain" with a reason. */
void play_node (struct play_slurm *play, const char *name, const char *state, const char *reason);
/* Fields of a record, in its version's shape. */
int64_t play_number (const json_t *record, const char *field);
const char *play_text (const json_t *record, const char *field); /* the first of a list */
void play_set (json_t *record, const char *field, int64_t value);
void play_set_text (json_t *record, const char *field, const char *value);
/* On these nodes, equally many processors on each. */
void play_runs (struct play_slurm *play, unsigned number, const char *nodes);

#endif
