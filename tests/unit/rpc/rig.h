/* rig: a server and a client on one loop, for the tests of proto/rpc. */
#ifndef NUI_TESTS_UNIT_RPC_RIG_H
#define NUI_TESTS_UNIT_RPC_RIG_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/rpc/rpcclient.h"
#include "proto/rpc/rpcserver.h"
#include "tests/interop/echo.pb-c.h"
#include "tests/interop/echoserver.h"
#include "tests/interop/testca.h"

struct rig {
    char *dir;
    struct testca *ca;
    struct event_base *base;
    struct tlsid *server_id, *user_id;
    struct rpcserver *server;
    struct rpcclient *client;
    struct echoserver echo;
    char target[300];
    unsigned lost; /* connections, as the clients told */
};

/* One outgoing call and its outcome. */
struct outcome {
    struct rpccallout *call;
    unsigned done; /* times */
    enum rpc_status status;
    char message[ERR_TEXT_MAX];
    char text[256];
    char peer[PRINCIPAL_URI_MAX];
    size_t data_len;
    unsigned messages;
    uint64_t bytes;
};

void rig_up (struct rig *rig);
void rig_down (struct rig *rig);
/* A server on the loop's own port (or `listen`), with the echo service. */
struct rpcserver *rig_server (struct rig *rig, const char *listen);
struct rpcclient *rig_client (struct rig *rig, struct tlsid *id);
/* Runs the loop until *flag is non-zero; fails the test after 20 s. */
void rig_until (struct rig *rig, const unsigned *flag);
void rig_until_count (struct rig *rig, const unsigned *count, unsigned wanted);
void rig_turn (struct rig *rig); /* one turn without blocking */

void rig_start (struct rig *rig, struct outcome *o, const char *method,
                const Nui__Test__V1__EchoRequest *request, duration_us timeout, bool idempotent);
void rig_call (struct rig *rig, struct outcome *o, const char *method, const char *text);

#define REQUEST NUI__TEST__V1__ECHO_REQUEST__INIT

#endif
