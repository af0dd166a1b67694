/* inproc: a daemon's services without a network. It stands in for proto/rpc's server, client and daemon skeleton, for
 * libcurl's loop and for the embedded runner (what is linked first wins), so that the real handlers of nui-local,
 * nui-meta and nui-bank can be called one by one: by their method tables, with a request's bytes, through the same
 * check of kind, size and content as the transport makes (rpcrequest.h).
 *
 * One daemon at a time, one thread, a real libevent loop. What others would answer is the world's to say. */
#ifndef NUI_TESTS_FUZZ_INPROC_H
#define NUI_TESTS_FUZZ_INPROC_H

#include <event2/event.h>

#include "proto/conf/conf.h"
#include "proto/rpc/daemon.h"
#include "proto/rpc/rpcserver.h"

struct inproc_config {
    struct tlsid *id;      /* the daemon's */
    const char *dir;       /* its state, there already */
    const char *conf_text; /* without the skeleton's own keys; ChangeParam appends to it */
    /* Takes over a configuration; NULL: it cannot change. On success conf is the callee's. */
    int (*reload) (struct conf *conf, struct err *err);
    /* What a server would answer to this daemon: a message to be freed with free_unpacked, or NULL: it cannot be
     * reached. */
    ProtobufCMessage *(*answer) (const char *target, const char *method,
                                 const ProtobufCMessage *request);
    uint32_t patience_ms; /* an answer is waited for so long; 0: only what is due is done */
};

void inproc_open (const struct inproc_config *config);
/* After the services are destroyed. Aborts when a call was never finished. */
void inproc_close (void);
void inproc_patience (uint32_t ms); /* from now on */
struct daemon *inproc_daemon (void);
struct event_base *inproc_base (void);
void inproc_conf_set (struct conf *conf); /* what daemon_conf shows; the caller's */
/* Runs the loop until it is so; false after a minute. */
bool inproc_until (bool (*so) (void *arg), void *arg);
bool inproc_stopped (void); /* the daemon was told to end, by a call that may */

struct inproc_method {
    const ProtobufCServiceDescriptor *service;
    const ProtobufCMethodDescriptor *descriptor;
    const struct rpc_method *info;
    void *self;
};
uint32_t inproc_method_count (void);
const struct inproc_method *inproc_method (uint32_t index);
const struct inproc_method *
inproc_method_find (const char *name); /* "Admin.Queue", "Bank.Hold"; aborts */

struct inproc_caller {
    enum principal_kind kind;
    const char *name; /* in grid "test"; a local account's */
    bool local;
    uint32_t uid;
};

struct inproc_result {
    bool answered; /* else it was cut off after patience, or goes on */
    enum rpc_status status;
    char text[512];
    size_t reply_bytes;
    uint64_t work; /* the longest piece that held the loop, by inproc_meter */
};

/* bytes are changed (mended) as the transport would. reply_out may be NULL; to be freed with free_unpacked. Aborts when
 * the answer itself is no good, or the daemon stops for an error. */
void inproc_call (const struct inproc_method *method, const struct inproc_caller *caller,
                  uint8_t *bytes, size_t len, ProtobufCMessage **reply_out,
                  struct inproc_result *out);
/* A message that the test made; asserts an answer with status OK. */
ProtobufCMessage *inproc_must (const char *method, const struct inproc_caller *caller,
                               const ProtobufCMessage *request);

/* The runner is nui-node's: what it is told to adopt runs, since its directory has come. Else only what it has started does. */
extern bool inproc_adopts;
extern uint64_t (*inproc_meter) (void); /* what counts work; NULL: nothing does */

#endif
