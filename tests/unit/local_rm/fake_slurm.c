#include "tests/unit/local_rm/fake_slurm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

struct fake_slurm {
    struct evhttp *http;
    struct evhttp_bound_socket *bound;
    fake_slurm_fn answer;
    void *arg;
    const char *token;
};

static const char *method_name (enum evhttp_cmd_type type)
{
    return type == EVHTTP_REQ_POST ? "POST" : type == EVHTTP_REQ_DELETE ? "DELETE" : "GET";
}

static void on_request (struct evhttp_request *request, void *arg)
{
    struct fake_slurm *fake = arg;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri (request);
    const char *query = evhttp_uri_get_query (uri);
    struct evbuffer *in = evhttp_request_get_input_buffer (request);
    struct strbuf sent = STRBUF_INIT, body = STRBUF_INIT;
    size_t len = evbuffer_get_length (in);
    fake->token =
        evhttp_find_header (evhttp_request_get_input_headers (request), "X-SLURM-USER-TOKEN");
    strbuf_append (&sent, evbuffer_pullup (in, -1), len);
    int status =
        fake->answer (fake->arg, method_name (evhttp_request_get_command (request)),
                      evhttp_uri_get_path (uri), query ? query : "", strbuf_text (&sent), &body);
    struct evbuffer *out = evbuffer_new ();
    evbuffer_add (out, strbuf_text (&body), body.len);
    evhttp_send_reply (request, status, NULL, out);
    evbuffer_free (out);
    strbuf_free (&body);
    strbuf_free (&sent);
}

struct fake_slurm *fake_slurm_create (struct event_base *base, fake_slurm_fn answer, void *arg)
{
    struct fake_slurm *fake = calloc (1, sizeof *fake);
    assert (fake);
    *fake = (struct fake_slurm){.http = evhttp_new (base), .answer = answer, .arg = arg};
    evhttp_set_allowed_methods (fake->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_DELETE);
    evhttp_set_gencb (fake->http, on_request, fake);
    fake->bound = evhttp_bind_socket_with_handle (fake->http, "127.0.0.1", 0);
    assert (fake->bound);
    return fake;
}

void fake_slurm_destroy (struct fake_slurm *fake)
{
    evhttp_free (fake->http);
    free (fake);
}

const char *fake_slurm_token (const struct fake_slurm *fake)
{
    return fake->token;
}

uint16_t fake_slurm_port (const struct fake_slurm *fake)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int rc = getsockname (evhttp_bound_socket_get_fd (fake->bound), (struct sockaddr *)&at, &len);
    assert (rc == 0);
    return ntohs (at.sin_port);
}

void fake_slurm_versions (const char *versions, int since, struct strbuf *body)
{
    static const char *const lists[] = {"jobs", "nodes", "partitions"};
    char *copy = strdup (versions), *save = NULL;
    json_t *paths = json_object ();
    for (char *v = strtok_r (copy, " ", &save); v; v = strtok_r (NULL, " ", &save))
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            char path[64];
            snprintf (path, sizeof path, "/slurm/%s/%s", v, lists[i]);
            json_object_set_new (paths, path,
                                 since ? json_pack ("{s:{s:[{s:s, s:s}]}}", "get", "parameters",
                                                    "name", "update_time", "in", "query")
                                       : json_pack ("{s:{}}", "get"));
        }
    json_t *doc = json_pack ("{s:s, s:o}", "openapi", "3.0.2", "paths", paths);
    char *text = json_dumps (doc, JSON_INDENT (2));
    strbuf_puts (body, text);
    free (text);
    json_decref (doc);
    free (copy);
}

json_t *fake_slurm_recorded (const char *name)
{
    char path[512];
    const char *key;
    json_t *value;
    snprintf (path, sizeof path, NUI_SLURM_ANSWERS "/%s", name);
    json_t *doc = json_load_file (path, 0, NULL), *list = NULL;
    assert (doc);
    json_object_foreach (doc, key, value) if (json_is_array (value) && strcmp (key, "errors") != 0)
        list = json_incref (value);
    json_decref (doc);
    assert (list);
    return list;
}

void fake_slurm_list (const char *key, const json_t *entries, struct strbuf *body)
{
    json_t *one;
    size_t i;
    strbuf_printf (
        body, "{\n  \"meta\": {\n    \"Slurm\": {\n    }\n  },\n  \"errors\": [\n  ],\n  \"%s\": [",
        key);
    json_array_foreach (entries, i, one)
    {
        char *text = json_dumps (one, JSON_INDENT (2));
        strbuf_printf (body, "%s\n", i ? "," : "");
        strbuf_puts (body, text);
        free (text);
    }
    strbuf_puts (body, "\n  ]\n}\n");
}
