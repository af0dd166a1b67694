/* rules: reads the configuration into checked rules, and maps a URL to where its bytes really
 * go. Everything in this folder that meets a URL asks it, redirects too. Nothing is looked up
 * and nothing opened for a URL here: it only says yes, with what credential, or no. */
#include "local/stage/rules.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void limits_fill (struct rules *r, const struct stage_config *c)
{
    r->limit = *c;
    struct stage_config *l = &r->limit;
    l->state_dir = l->credentials = l->known_hosts = l->ca = NULL;
    l->root = l->host = NULL;
    l->transfers_max = c->transfers_max ? c->transfers_max : 8;
    l->host_max = c->host_max ? c->host_max : 4;
    l->file_max = c->file_max ? c->file_max : INT64_MAX;
    l->s3_part = c->s3_part ? c->s3_part : 64 << 20;
    l->bandwidth = c->bandwidth > 0 ? c->bandwidth : 10 * 1000 * 1000;
    l->tries_max = c->tries_max ? c->tries_max : 8;
    l->patience = c->patience ? c->patience : 60 * US_PER_S;
    l->rate_min = c->rate_min ? c->rate_min : 1024;
    l->time_max = c->time_max ? c->time_max : 24 * 3600 * US_PER_S;
    l->backoff_first = c->backoff_first ? c->backoff_first : 2 * US_PER_S;
    l->backoff_max = c->backoff_max ? c->backoff_max : 300 * US_PER_S;
}

static int file_readable (const char *what, const char *path, char **out, struct err *err)
{
    if (!path)
        return 0;
    if (access (path, R_OK) != 0)
        return err_set (err, ERR_NOT_FOUND, "%s %s: %s", what, path, strerror (errno));
    *out = strdup (path);
    assert (*out);
    return 0;
}

int rules_read (const struct stage_config *config, struct rules **out, struct err *err)
{
    struct rules *r = calloc (1, sizeof *r);
    assert (r);
    r->owners = 1;
    limits_fill (r, config);
    r->root = calloc (config->root_count + 1, sizeof *r->root);
    assert (r->root);
    int rc = hosts_parse (config->host, config->host_count, &r->hosts, err);
    if (rc != 0)
        err_prefix (err, "STAGEHOSTS");
    if (rc == 0)
        rc = credentials_read (config->credentials, &r->credentials, err);
    for (uint32_t i = 0; rc == 0 && i < config->root_count; i++) {
        char *path = realpath (config->root[i], NULL);
        if (!path)
            rc =
                err_set (err, ERR_NOT_FOUND, "STAGEROOT %s: %s", config->root[i], strerror (errno));
        else
            r->root[r->root_count++] = path;
    }
    if (rc == 0)
        rc = file_readable ("STAGEKNOWNHOSTS", config->known_hosts, &r->known_hosts, err);
    if (rc == 0)
        rc = file_readable ("STAGECA", config->ca, &r->ca, err);
    if (rc != 0) {
        rules_drop (r);
        return rc;
    }
    *out = r;
    return 0;
}

struct rules *rules_share (struct rules *r)
{
    r->owners++;
    return r;
}

void rules_drop (struct rules *r)
{
    if (!r || --r->owners > 0)
        return;
    for (uint32_t i = 0; i < r->root_count; i++)
        free (r->root[i]);
    free (r->root);
    hosts_free (r->hosts);
    credentials_free (r->credentials);
    free (r->known_hosts);
    free (r->ca);
    free (r);
}

/* --- URLs ---------------------------------------------------------------------------------- */

static int hex (char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

void rules_decode (const char *path, char *out, size_t cap)
{
    size_t n = 0;
    for (const char *p = path; *p && n + 1 < cap; p++) {
        bool coded = *p == '%';
        out[n++] = coded ? (char)(hex (p[1]) * 16 + hex (p[2])) : *p;
        p += coded ? 2 : 0;
    }
    out[n] = 0;
}

/* As signatures of version 4 want it: everything but unreserved characters and '/'. */
static void encode (const char *path, char *out, size_t cap)
{
    size_t n = 0;
    for (const char *p = path; *p && n + 4 < cap; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr ("-._~/", *p);
        n += (size_t)snprintf (out + n, cap - n, plain ? "%c" : "%%%02X", (unsigned char)*p);
    }
    out[n] = 0;
}

const char *rules_root_of (const struct rules *r, const char *path, const char **below_out)
{
    for (uint32_t i = 0; i < r->root_count; i++) {
        size_t len = strlen (r->root[i]);
        if (len == 1) /* "/" */
            len = 0;
        if (strncmp (path, r->root[i], len) != 0 || path[len] != '/')
            continue;
        *below_out = path + len + 1;
        return r->root[i];
    }
    return NULL;
}

static int wire_file (const struct rules *r, const struct stage_url *url, struct wire *out,
                      struct err *err)
{
    const char *below;
    rules_decode (url->path, out->url, sizeof out->url);
    if (!rules_root_of (r, out->url, &below))
        return err_set (err, ERR_DENIED,
                        r->root_count ? "the site stages no files from or to that folder"
                                      : "the site stages no files of its own file systems");
    return 0;
}

static int wire_s3 (const struct stage_url *url, struct wire *out, struct err *err)
{
    char plain[STAGE_URL_MAX], key[3 * STAGE_URL_MAX];
    struct stage_url endpoint;
    const struct credential *c = out->credential;
    if (!c)
        return err_set (err, ERR_UNSUPPORTED, "the site knows no endpoint for the s3 bucket '%s'",
                        url->host);
    rules_decode (url->path, plain, sizeof plain);
    encode (plain, key, sizeof key);
    snprintf (plain, sizeof plain, "%s/", c->endpoint);
    int rc = stage_url_parse (plain, &endpoint, err);
    snprintf (out->url, sizeof out->url, "%.511s/%s%s", c->endpoint, url->host, key);
    snprintf (out->host, sizeof out->host, "%s", endpoint.host);
    out->scheme = endpoint.scheme;
    out->s3 = true;
    return rc;
}

int rules_wire (const struct rules *r, const char *text, const char *user, struct wire *out,
                struct err *err)
{
    struct stage_url url;
    int rc = stage_url_parse (text, &url, err);
    if (rc != 0)
        return rc;
    *out = (struct wire){.scheme = url.scheme};
    if (url.scheme == STAGE_SENT)
        return 0;
    out->credential = credentials_find (r->credentials, &url, user);
    if (url.scheme == STAGE_FILE)
        return wire_file (r, &url, out, err);
    if (url.scheme == STAGE_S3)
        rc = wire_s3 (&url, out, err);
    else {
        snprintf (out->url, sizeof out->url, "%s", text);
        snprintf (out->host, sizeof out->host, "%s", url.host);
    }
    if (rc != 0)
        return rc;
    if (url.scheme == STAGE_SFTP) {
        const struct credential *c = out->credential;
        if (!r->known_hosts)
            return err_set (err, ERR_UNSUPPORTED,
                            "the site knows no ssh hosts, so it stages nothing over sftp");
        if (!c)
            return err_set (err, ERR_DENIED, "the site has no key for sftp with host %s", url.host);
        if (c->login && *url.user && strcmp (c->login, url.user) != 0)
            return err_set (err, ERR_DENIED,
                            "the site's key for host %s is not for that user there", url.host);
        if (!c->login && !*url.user)
            return err_set (err, ERR_INVALID,
                            "sftp with host %s needs a user: sftp://USER@HOST/PATH", url.host);
    }
    return hosts_check (r->hosts, out->host, NULL, err);
}

int rules_redirect (const struct rules *r, char *location, const char *user, struct wire *wire,
                    struct err *err)
{
    struct wire next;
    location[strcspn (location, "#")] = 0;
    int rc = wire->s3
                 ? err_set (err, ERR_DENIED, "the bucket is at another endpoint than the site's")
                 : rules_wire (r, location, user, &next, err);
    if (rc == 0 && next.scheme != STAGE_HTTPS &&
        (next.scheme != STAGE_HTTP || wire->scheme != STAGE_HTTP))
        rc = err_set (err, ERR_DENIED, "to another protocol, which is not followed");
    if (rc != 0)
        return err_prefix (err, "redirected");
    *wire = next;
    return 0;
}
