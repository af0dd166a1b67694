/* nui-node of site alpha: runs that have come, one of which has ended, and files of others on their way. The runner is inproc.c's: nothing is
 * executed, but files are written and read as they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/embedded/node_i.h"
#include "tests/fuzz/handlers/world.h"

static const struct inproc_caller callers[] = {
    {PRINCIPAL_SITE, "alpha", false, 0},
    {PRINCIPAL_SITE, "beta", false, 0},
    {PRINCIPAL_META, "meta", false, 0},
    {PRINCIPAL_NONE, NULL, false, 0},
};

/* Another site, and everybody who is none. */
static const struct world_stranger strangers[] = {
    {"Node", {PRINCIPAL_SITE, "beta", false, 0}},
    {"Node", {PRINCIPAL_META, "meta", false, 0}},
    {"Node", {PRINCIPAL_USER, "alice", false, 0}},
    {"Node", {PRINCIPAL_NODE, "alpha.n2", false, 0}},
    {"Node", {PRINCIPAL_OPERATOR, "op", false, 0}},
    {NULL, {PRINCIPAL_NONE, NULL, false, 0}},
};

static struct {
    struct tlsid *id;
    char dir[256], jobs[300];
    struct node_settings settings;
    struct node node;
} the;

static void must (const char *method, const ProtobufCMessage *request)
{
    protobuf_c_message_free_unpacked (inproc_must (method, &callers[0], request), NULL);
}

static void run_make (uint32_t number, bool start, bool end)
{
    char id[32], spec[256];
    Nui__Node__V1__Run run = NUI__NODE__V1__RUN__INIT;
    Nui__Node__V1__PutRequest put = NUI__NODE__V1__PUT_REQUEST__INIT;
    Nui__Node__V1__StartRequest begin = NUI__NODE__V1__START_REQUEST__INIT;
    Nui__Node__V1__ActRequest act = NUI__NODE__V1__ACT_REQUEST__INIT;
    snprintf (id, sizeof id, "alpha.%u", number);
    run.job_id = id;
    run.mark = (char *)(uintptr_t) "0123456789abcdef";
    put.run = begin.run = act.run = &run;
    put.path = (char *)(uintptr_t) "script";
    put.mode = 0700;
    put.data = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "exit 0\n"};
    put.anew = true;
    put.account = (char *)(uintptr_t) "games";
    must ("Node.Put", &put.base);
    int len =
        snprintf (spec, sizeof spec, "job_id=%s%cmark=%s%caccount=games%cwalltime_us=60000000", id,
                  0, run.mark, 0, 0);
    begin.spec = (ProtobufCBinaryData){(size_t)len + 1, (uint8_t *)spec};
    if (start)
        must ("Node.Start", &begin.base);
    act.act = NUI__NODE__V1__ACT__ACT_CANCEL;
    if (end)
        must ("Node.Act", &act.base);
}

static void node_open (struct ground *ground, bool large)
{
    struct err err = {0};
    if (!the.id) {
        testca_issue (ground->ca,
                      &(struct testca_cert){.name = "node", .uri = "nui://test/node/alpha.n1"});
        the.id = testca_tlsid (ground->dir, "ca", "node", true);
    }
    ground_clear (ground, the.dir);
    snprintf (the.jobs, sizeof the.jobs, "%s/jobs", the.dir);
    inproc_adopts = true;
    inproc_open (
        &(struct inproc_config){.id = the.id, .dir = the.dir, .conf_text = "SITE alpha\n"});
    the.settings =
        (struct node_settings){.site = "alpha", .job_dir = the.jobs, .supervise = "/bin/false"};
    the.node = (struct node){.base = inproc_base (),
                             .log = daemon_log (inproc_daemon ()),
                             .settings = &the.settings,
                             .dir = -1};
    if (node_runs_open (&the.node, &err) != 0 ||
        node_serve_begin (&the.node, daemon_server (inproc_daemon ()), &err) != 0) {
        fprintf (stderr, "world_node: %s\n", err.text);
        abort ();
    }
    run_make (1, true, false);
    run_make (2, false, false);
    run_make (3, true, true);
    for (uint32_t i = 10; large && i < 500; i++)
        run_make (i, true, i % 2);
}

static void node_close (void)
{
    node_serve_draining (&the.node);
    node_runs_close (&the.node);
    inproc_close ();
}

struct world world = {.name = "nui-node",
                      .signers = {.site = "alpha"},
                      .callers = callers,
                      .strangers = strangers,
                      .open = node_open,
                      .close = node_close};
