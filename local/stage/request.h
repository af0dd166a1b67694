/* request: one libcurl transfer with a staging server: its options, who it may talk to, what came
 * of it.
 *
 * Every option that decides whom the daemon talks to and what it shows stands here. Redirects are
 * not followed by libcurl: the next URL goes through rules_wire like the first. */
#ifndef NUI_LOCAL_STAGE_REQUEST_H
#define NUI_LOCAL_STAGE_REQUEST_H

#include "local/stage/rules.h"
#include "proto/curl/curl_loop.h"

struct request;
typedef void (*request_fn) (void *arg, CURLcode code);

struct request {
    CURL *easy; /* NULL: closed */
    struct curl_loop *loop;
    struct curl_slist *headers;
    const struct rules *rules;
    bool sftp;
    char host[STAGE_HOST_MAX];
    char error[CURL_ERROR_SIZE];
    struct err refused; /* why we ended it; code 0: we did not */
    struct err blocked; /* an address of the host that we do not talk to */
    request_fn fn;
    void *arg;
};

/* What over () of the engine's curl_loop calls. */
void request_over (void *arg, CURL *easy, CURLcode code);

/* Ready but for what it is to do. No callback comes before request_go. */
int request_open (struct request *r, struct curl_loop *loop, const struct rules *rules,
                  const struct wire *wire, request_fn fn, void *arg, struct err *err);
void request_header (struct request *r, const char *name, const char *value);
int request_go (struct request *r, struct err *err);
void request_close (struct request *r); /* also of one that is under way or was never opened */

long request_status (const struct request *r); /* HTTP; 0: none yet */
/* NULL: there is none. Until the handle is closed. */
const char *request_answer_header (const struct request *r, const char *name);

/* How the attempt ended, for whoever waits for it. */
enum request_outcome {
    REQUEST_DONE,
    REQUEST_REDIRECT,  /* to *location_out, malloc'ed */
    REQUEST_TRANSIENT, /* worth another try */
    REQUEST_NO_HOST,   /* likewise, but not as often */
    REQUEST_FAILED,
};
/* err: a sentence for all but the first two. */
enum request_outcome request_judge (const struct request *r, CURLcode code, char **location_out,
                                    struct err *err);

#endif
