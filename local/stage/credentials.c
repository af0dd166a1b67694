/* credentials: reads STAGECREDENTIALS and finds the row for a URL and a user. rules.c calls it.
 * A file that others could read is refused, and no secret may stand in a log, an error or a
 * reply. */
#include "local/stage/credentials.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/conf/conf.h"

enum { ROWS_MAX = 10000 };

struct credentials {
    struct conf *conf; /* holds all texts */
    struct credential *row[ROWS_MAX];
    uint32_t count;
};

static const char *const types[] = {"BEARER", "BASIC", "HEADER", "SFTP", "S3", NULL};

#define ROW(key, field)                                                                            \
    {                                                                                              \
        .name = key, .type = CONF_STRING, .offset = offsetof (struct credential, field)            \
    }
static const struct conf_param attrs[] = {
    {.name = "TYPE",
     .type = CONF_WORD,
     .offset = offsetof (struct credential, type),
     .words = types},
    {.name = "KEY", .type = CONF_PATH, .offset = offsetof (struct credential, key)},
    ROW ("HOST", host),
    ROW ("USER", user),
    ROW ("BUCKET", bucket),
    ROW ("TOKEN", token),
    ROW ("LOGIN", login),
    ROW ("HEADER", header),
    ROW ("REGION", region),
    ROW ("PASSWORD", password),
    ROW ("ENDPOINT", endpoint),
    ROW ("ACCESS", access),
    ROW ("SECRET", secret),
    ROW ("SESSION", session),
    {0},
};
#undef ROW

static int row_get (void *target, const char *index, void **record_out, struct err *err)
{
    struct credentials *c = target;
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp (c->row[i]->name, index) == 0) {
            *record_out = c->row[i];
            return 0;
        }
    if (c->count == ROWS_MAX)
        return err_set (err, ERR_LIMIT, "at most %d rows", ROWS_MAX);
    struct credential *row = calloc (1, sizeof *row);
    assert (row);
    *row = (struct credential){.name = index, .type = -1};
    c->row[c->count++] = row;
    *record_out = row;
    return 0;
}

static const struct conf_param params[] = {
    {.name = "STAGECRED", .type = CONF_RECORD, .attrs = attrs, .record = row_get},
    {0},
};

static int private_check (const char *path, struct err *err)
{
    struct stat st;
    if (stat (path, &st) != 0)
        return err_set (err, ERR_NOT_FOUND, "%s: %s", path, strerror (errno));
    if (st.st_uid != geteuid () || !S_ISREG (st.st_mode) || (st.st_mode & 077))
        return err_set (
            err, ERR_DENIED,
            "%s holds secrets: it must be a file of this daemon's account that nobody else can "
            "read (mode 0600)",
            path);
    return 0;
}

static int row_check (const struct credential *r, struct err *err)
{
    static const char *const wanted[] = {
        [CREDENTIAL_BEARER] = "TOKEN and HOST",
        [CREDENTIAL_BASIC] = "LOGIN, PASSWORD and HOST",
        [CREDENTIAL_HEADER] = "HEADER=\"NAME: VALUE\" and HOST",
        [CREDENTIAL_SFTP] = "KEY and HOST",
        [CREDENTIAL_S3] = "ENDPOINT=http[s]://…, and ACCESS with SECRET or neither",
    };
    struct stage_url endpoint;
    bool fits = false;
    char url[STAGE_URL_MAX];
    switch (r->type) {
    case CREDENTIAL_BEARER:
        fits = r->host && r->token;
        break;
    case CREDENTIAL_BASIC:
        fits = r->host && r->login && r->password;
        break;
    case CREDENTIAL_HEADER:
        fits = r->host && r->header && strchr (r->header, ':');
        break;
    case CREDENTIAL_SFTP:
        fits = r->host && r->key;
        break;
    case CREDENTIAL_S3:
        snprintf (url, sizeof url, "%s/", r->endpoint ? r->endpoint : "");
        fits = stage_url_parse (url, &endpoint, NULL) == 0 && strcmp (endpoint.path, "/") == 0 &&
               (endpoint.scheme == STAGE_HTTP || endpoint.scheme == STAGE_HTTPS) &&
               !r->access == !r->secret;
        break;
    default:
        return err_set (err, ERR_INVALID, "STAGECRED[%s]: TYPE is not said", r->name);
    }
    if (!fits)
        return err_set (err, ERR_INVALID, "STAGECRED[%s]: wanted %s", r->name, wanted[r->type]);
    return r->type == CREDENTIAL_SFTP ? private_check (r->key, err) : 0;
}

int credentials_read (const char *path, struct credentials **out, struct err *err)
{
    struct credentials *c = calloc (1, sizeof *c);
    assert (c);
    int rc = 0;
    if (path && (rc = private_check (path, err)) == 0) {
        c->conf = conf_read_file (path, err);
        rc = c->conf ? conf_table_read (c->conf, params, c, err) : ERR_INVALID;
        if (rc == 0)
            rc = conf_finish (c->conf, err);
        for (uint32_t i = 0; rc == 0 && i < c->count; i++)
            if ((rc = row_check (c->row[i], err)) != 0)
                err_prefix (err, "%s", path);
    }
    if (rc != 0) {
        credentials_free (c);
        return rc;
    }
    *out = c;
    return 0;
}

void credentials_free (struct credentials *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->count; i++)
        free (c->row[i]);
    conf_destroy (c->conf);
    free (c);
}

static bool fits (const struct credential *r, const struct stage_url *url)
{
    if (url->scheme == STAGE_S3)
        return r->type == CREDENTIAL_S3 && (!r->bucket || fnmatch (r->bucket, url->host, 0) == 0);
    bool kind = url->scheme == STAGE_HTTPS  ? r->type <= CREDENTIAL_HEADER
                : url->scheme == STAGE_SFTP ? r->type == CREDENTIAL_SFTP
                                            : false;
    char with_port[STAGE_HOST_MAX + 8];
    snprintf (with_port, sizeof with_port, "%s:%u", url->host, url->port);
    return kind && (fnmatch (r->host, url->host, FNM_CASEFOLD) == 0 ||
                    fnmatch (r->host, with_port, FNM_CASEFOLD) == 0);
}

const struct credential *credentials_find (const struct credentials *c, const struct stage_url *url,
                                           const char *user)
{
    const struct credential *common = NULL;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct credential *r = c->row[i];
        if (!fits (r, url))
            continue;
        if (r->user && user && strcmp (r->user, user) == 0)
            return r;
        if (!r->user && !common)
            common = r;
    }
    return common;
}
