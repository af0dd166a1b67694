/* slurm_rest: requests to slurmrestd over libcurl, in the loop.
 *
 * The token is a good one (slurm_token); the version of the API is asked of the server (slurm_api; and again
 * after each time it could not be reached), and bodies are said in its words (slurm_wire). What Slurm puts off for a
 * moment is asked again, and a field of ours that slurmrestd passes over is an error. Answers come as the objects of their arrays, a few at a
 * time, so that a long one never holds the loop: see slurm_json. One loop, one thread. */
#ifndef NUI_LOCAL_RM_SLURM_REST_H
#define NUI_LOCAL_RM_SLURM_REST_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "local/rm/slurm/slurm_api.h"
#include "proto/base/err.h"
#include "proto/base/log.h"
#include "proto/base/quantity.h"

struct slurm_rest_config {
    struct event_base *base;
    struct log *log;
    const char *server;     /* "http://host:port", "https://…" or "unix:/path" */
    const char *key_file;   /* Slurm's jwt_hs256.key, or NULL */
    const char *token_file; /* one that the site renews */
    const char *user;       /* in whose name: "root", SlurmUser */
    duration_us token_life; /* whole seconds, at least 2 */
};

struct slurm_rest;

struct slurm_answer {
    int code; /* 0, or an err_code: ERR_UNAVAILABLE when nothing was heard, ERR_INVALID … */
    int64_t
        number; /* Slurm's own error number; 0: none. ERR_INVALID with job_id: taken without a field */
    char text[400]; /* why not, in a sentence */
    bool unchanged; /* nothing new since update_time */
    int64_t job_id; /* of a submission; 0: not said */
};

struct slurm_rest *slurm_rest_create (const struct slurm_rest_config *config, struct err *err);
void slurm_rest_destroy (struct slurm_rest *rest); /* what is under way is never answered */

/* Path below /slurm/VERSION ("jobs?update_time=7"). on_object: each object of the array named key;
 * it may refuse it (then the request fails with that). on_done is called once, never from here. */
struct slurm_request {
    const char *method; /* "GET", "POST", "DELETE" */
    const char *path;
    const char *user; /* NULL: config's */
    json_t *body;     /* taken over; NULL: none */
    int (*on_object) (void *arg, const char *key, json_t *object, struct err *err); /* or NULL */
    void (*on_done) (void *arg, const struct slurm_answer *answer);
    void (*on_drop) (void *arg); /* slurm_rest_destroy came first; NULL: nothing to be done */
    void *arg;
};
void slurm_rest_send (struct slurm_rest *rest, const struct slurm_request *request);

/* What it speaks; all zero while that is not known. */
const struct slurm_api *slurm_rest_api (const struct slurm_rest *rest);

#endif
