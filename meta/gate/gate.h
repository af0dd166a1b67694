/* gate: what the files of nui-gate share: one program's state, one request's, and how a request goes on.
 *
 * A request is an ask: the door (door.c) reads it whole, finds its route (routes.c) and runs that once. The route answers at
 * once, or after calls (ask_call) that end in functions of its own; every route ends in exactly one ask_json, ask_problem,
 * ask_fail, ask_empty or ask_stream. An ask outlives its last call. */
#ifndef NUI_META_GATE_GATE_H
#define NUI_META_GATE_GATE_H

#include <event2/event.h>
#include <jansson.h>
#include <microhttpd.h>

#include "meta/gate/token.h"
#include "proto/base/arena.h"
#include "proto/base/log.h"
#include "proto/metrics/metrics.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/rpcclient.h"

enum {
    GATE_METAS_MAX = 7,
    GATE_BODY_MAX = 1 << 20, /* of a request */
    GATE_SEGMENTS_MAX = 12,  /* of a path */
    GATE_PAGE_DEFAULT = 100, /* items of a list */
    GATE_PAGE_MAX = 1000,
};

struct gate_config {
    const char *meta[GATE_METAS_MAX];
    uint32_t meta_count;
    const char *bank, *http, *https, *https_cert, *https_key;
    const char *facility, *organisation, *support;
    int64_t connections, per_address, requests_per_s, streams;
    duration_us timeout;
};

struct route;
struct ask;
struct gate_site; /* a client of a site: sites.c */
struct watches;   /* streams of events: events.c */
struct numbers;   /* numbers.c */

struct gate {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *grid, *name;
    const struct gate_config *config;
    struct rpcclient *meta[GATE_METAS_MAX];
    uint32_t meta_now; /* the one that answered last */
    struct rpcclient *bank;
    struct gate_site *sites;
    Nui__Meta__V1__SitesReply *snapshot; /* of all sites, for everybody: iri.c */
    duration_us snapshot_at;
    struct tokens *tokens;
    struct numbers *numbers;
    struct watches *watches;
    struct connshare *shares;
    struct door *door[2]; /* HTTP, HTTPS */
    const struct route *(*find) (struct ask *ask,
                                 bool *other_out); /* route_find: the door knows no route by name */
    struct ask *asks;                              /* open */
    char *openapi;                                 /* the document */
    time_us started;
    uint64_t answered[6]; /* by the first digit of the status */
    struct metrics_times times;
    bool stopping;
};

struct ask {
    struct gate *gate;
    struct MHD_Connection *connection;
    struct arena *arena; /* of the request */
    const char *verb, *url;
    char *segment[GATE_SEGMENTS_MAX]; /* decoded, without the empty ones */
    uint32_t segments;
    char *argument[4]; /* what stood for {} in the route */
    const struct route *route;
    struct token *token; /* NULL: a route that needs none */
    struct strbuf body;
    json_t *json; /* of the body; NULL: none */
    /* Under way. */
    struct rpccallout *call;
    void (*then) (struct ask *ask, const struct rpc_result *result);
    const ProtobufCMessage *retry; /* request of the call, kept for another metascheduler */
    const char *method;
    uint32_t tried;
    void *more; /* a route's own, in the arena */
    bool suspended, dispatched, done;
    duration_us begun;
    /* The answer. */
    int64_t total; /* bytes of the whole, of which this is a part; 0: not said */
    unsigned status;
    struct MHD_Response *response;
    struct ask *prev, *next;
};

/* ---- routes.c */

/* What a route of the extension is: one call of the contract. */
struct route_rpc {
    const ProtobufCServiceDescriptor *service;
    const char *method;
    const char *field[2]; /* of the request, from the path's arguments; NULL: none */
    bool body;            /* the request is the body; else the query's parameters */
};

struct route {
    const char *verb, *path; /* {} for an argument */
    void (*run) (struct ask *ask);
    const struct route_rpc *rpc;
    bool open; /* without a token */
    const char *summary;
};
extern const struct route routes[];
/* Which it is; *other_out: there is one of that path for another verb. NULL: none. */
const struct route *route_find (struct ask *ask, bool *other_out);
json_t *openapi_make (const struct gate *gate);

/* ---- door.c */

struct door *door_open (struct gate *gate, const char *listen, bool tls, struct err *err);
int door_check (const char *listen, bool tls, struct err *err);
uint16_t door_port (const struct door *door);
void door_close (struct door *door); /* NULL is a no-op */
void door_turn_all (struct gate *gate);
void door_resume (struct gate *gate, struct MHD_Connection *connection);
unsigned door_connections (const struct gate *gate);

const char *ask_query (struct ask *ask, const char *name); /* NULL: not there */
const char *ask_header (struct ask *ask, const char *name);
/* A number of the query, within bounds. ERR_INVALID */
int ask_number (struct ask *ask, const char *name, int64_t least, int64_t most, int64_t initial,
                int64_t *out, struct err *err);

void ask_json (struct ask *ask, unsigned status, json_t *json); /* takes the reference */
void ask_text (struct ask *ask, unsigned status, const char *type, const void *bytes, size_t len);
void ask_empty (struct ask *ask, unsigned status);
void ask_problem (struct ask *ask, unsigned status, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
void ask_fail (struct ask *ask, const struct err *err);
void ask_failed (struct ask *ask, const struct rpc_result *result); /* a call's own words */
void ask_stream (struct ask *ask, struct MHD_Response *response);

/* One call for the token's user; then is called once, never inside. service: nui.meta.v1.Meta goes to the metascheduler
 * that answers, nui.bank.v1.Bank to the bank. request lives in the arena. */
void ask_call (struct ask *ask, const ProtobufCServiceDescriptor *service, const char *method,
               const ProtobufCMessage *request,
               void (*then) (struct ask *ask, const struct rpc_result *result));

/* ---- submit.c */

/* Fills in who, until when and which number, and signs with the gate's key: an envelope that the token's delegation allows.
 * The job is changed. ERR_DENIED: it does not. The caller frees it. */
int submit_sign (struct ask *ask, Nui__Common__V1__Job *job, Nui__Common__V1__Envelope **out,
                 struct err *err);
void submit_run (struct ask *ask);   /* POST nui/jobs */
void estimate_run (struct ask *ask); /* POST nui/estimate */
/* Signs and sends; then as of ask_call. */
void submit_send (struct ask *ask, Nui__Common__V1__Job *job,
                  void (*then) (struct ask *ask, const struct rpc_result *result));

/* ---- jobspec.c: PSI/J's JobSpec */

/* Into a job without what submit_sign fills in, in the arena. ERR_INVALID names the field, ERR_UNSUPPORTED what cannot be
 * had here. */
int jobspec_read (json_t *spec, const char *site, struct arena *arena, Nui__Common__V1__Job **out,
                  struct err *err);
/* Back: as it was given, or as near as a job of another kind comes. */
json_t *jobspec_write (const Nui__Common__V1__Job *job);

/* ---- iri.c, account.c, compute.c: the IRI Facility API */
void iri_facility (struct ask *ask);
void iri_sites (struct ask *ask);
void iri_resources (struct ask *ask);
void iri_incidents (struct ask *ask);
void iri_events (struct ask *ask);
void iri_tasks (struct ask *ask);
void iri_capabilities (struct ask *ask);
void iri_projects (struct ask *ask);
void iri_allocations (struct ask *ask);
void iri_submit (struct ask *ask);
void iri_job (struct ask *ask);
void iri_jobs (struct ask *ask);
void iri_update (struct ask *ask);
void iri_cancel (struct ask *ask);
/* Then with the grid's sites, at most a second old: one snapshot for all who ask. */
void iri_snapshot (struct ask *ask,
                   void (*then) (struct ask *ask, const Nui__Meta__V1__SitesReply *sites));
/* The items of a list from offset on, limit of them; all of them where one is named by its id, then it alone. Takes items. */
void iri_answer (struct ask *ask, json_t *items, const char *id);
char *iri_uri (struct ask *ask, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));
json_t *iri_time (time_us at); /* "2026-11-26T14:00:00Z" */

/* ---- nui.c */
void nui_rpc (struct ask *ask); /* what route->rpc says */
void nui_whoami (struct ask *ask);
void nui_openapi (struct ask *ask);

/* ---- files.c */
void files_output (struct ask *ask); /* GET nui/jobs/{}/output */
void files_run (struct ask *ask);    /* GET nui/jobs/{}/files: the list, or with path one of them */

/* ---- sites.c */
/* A client of that site, at the address that the metascheduler says. NULL with err. */
struct rpcclient *sites_client (struct gate *gate, const char *name, const char *server,
                                struct err *err);
void sites_close (struct gate *gate);

/* ---- events.c */
struct watches *watches_create (struct gate *gate);
void watches_destroy (struct watches *watches); /* ends all streams */
unsigned watches_count (const struct watches *watches);
void events_run (struct ask *ask); /* GET nui/jobs/{}/events */

/* ---- numbers.c: which of a delegation's numbers are used */
struct numbers *numbers_open (const char *path, struct err *err);
void numbers_close (struct numbers *numbers);
/* The next, durably taken; for a key that was used before its number. ERR_CONFLICT: the key was for another request;
 * ERR_LIMIT: all jobs_max are used. */
int numbers_take (struct numbers *numbers, const GateDelegation *says, const char *key,
                  const uint8_t digest[32], time_us now, uint32_t *number_out, struct err *err);

#endif
