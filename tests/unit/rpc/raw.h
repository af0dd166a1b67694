/* raw: an HTTP/2 client that can misbehave, over the server's Unix socket, without TLS. */
#ifndef NUI_TESTS_UNIT_RPC_RAW_H
#define NUI_TESTS_UNIT_RPC_RAW_H

#include <nghttp2/nghttp2.h>

#include "tests/unit/rpc/rig.h"

struct raw {
    struct rig *rig;
    int fd;
    nghttp2_session *session;
    struct body *bodies;
    bool closed; /* by the server */
    unsigned goaways;
    /* of the stream looked at last */
    unsigned ended;               /* streams closed */
    uint32_t reset;               /* error code of the last close */
    unsigned resets;              /* RST_STREAM frames received */
    int http_status, grpc_status; /* -1: none */
    char message[512];
    uint64_t data_bytes;
};

/* A Unix socket is opened at <dir>/sock on a server of its own. */
struct rpcserver *raw_server (struct rig *rig, char path[256]);
void raw_up (struct raw *raw, struct rig *rig, const char *path, bool auto_window);
void raw_down (struct raw *raw);
/* Both ways, once, and a turn of the loop. */
void raw_pump (struct raw *raw);
void raw_until (struct raw *raw, const unsigned *count, unsigned wanted);

/* body NULL: END_STREAM is not sent. extra: n more header lines. Returns the stream id. */
int32_t raw_request (struct raw *raw, const char *path, const char *content_type,
                     const char *timeout, const void *body, size_t body_len,
                     const nghttp2_nv *extra, size_t extra_count);

#endif
