/* What a job says of one file: URL, path, checksum; from text and as one form. Called by the client, by jobstage.c and by the
 * site's mover (local/stage); no file is opened here. */
#include "proto/job/stagespec.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"

static const struct {
    const char *name;
    uint16_t port;
} schemes[] = {
    [STAGE_FILE] = {"file", 0},  [STAGE_HTTP] = {"http", 80}, [STAGE_HTTPS] = {"https", 443},
    [STAGE_SFTP] = {"sftp", 22}, [STAGE_S3] = {"s3", 0},      [STAGE_SENT] = {"nui", 0},
};

const char *stage_scheme_name (enum stage_scheme scheme)
{
    return schemes[scheme].name;
}

static int hex_digit (char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

const char *stage_url_show (const char *url, char *buf, size_t cap)
{
    size_t name = strcspn (url, ":/?#@");
    int scheme = strncmp (url + name, "://", 3) == 0 ? (int)name + 3 : 0;
    const char *rest = url + scheme;
    size_t authority = strcspn (rest, "/?#");
    for (size_t i = 0; scheme && i < authority; i++)
        if (rest[i] == '@') {
            rest += i + 1;
            authority -= i + 1;
            i = (size_t)-1;
        }
    size_t shown = strcspn (rest, "?#");
    snprintf (buf, cap, "%.*s%.*s", scheme, url, (int)(shown < cap ? shown : cap), rest);
    return buf;
}

/* The user, host and port between "://" and the path. */
static int authority_parse (const char *text, size_t len, struct stage_url *out, struct err *err)
{
    const char *at = memchr (text, '@', len), *end = text + len, *host = at ? at + 1 : text;
    if (at) {
        size_t user = (size_t)(at - text);
        if (memchr (text, ':', user))
            return err_set (
                err, ERR_INVALID,
                "a password in the URL would be read by many: the site keeps credentials");
        if (user == 0 || user >= sizeof out->user || out->scheme != STAGE_SFTP ||
            memchr (host, '@', (size_t)(end - host)))
            return err_set (err, ERR_INVALID,
                            "a user stands in URLs of sftp only, once: sftp://USER@HOST/PATH");
        memcpy (out->user, text, user);
    }
    bool bracket = host < end && *host == '[';
    const char *stop = bracket ? memchr (host, ']', (size_t)(end - host)) : host;
    if (!stop)
        return err_set (err, ERR_INVALID, "'[' without ']'");
    const char *colon = memchr (stop, ':', (size_t)(end - stop));
    const char *host_end = bracket ? stop : colon ? colon : end;
    host += bracket;
    size_t host_len = (size_t)(host_end - host);
    if (host_len == 0 || host_len >= sizeof out->host ||
        (bracket && stop + 1 != (colon ? colon : end)))
        return err_set (err, ERR_INVALID, "no host in it, or none of at most %d characters",
                        STAGE_HOST_MAX - 1);
    for (size_t i = 0; i < host_len; i++) {
        bool fits = bracket ? hex_digit (host[i]) >= 0 || host[i] == ':' || host[i] == '.'
                            : isalnum ((unsigned char)host[i]) || strchr (".-_", host[i]);
        if (!fits || (i == 0 && host[i] == '-'))
            return err_set (err, ERR_INVALID, "'%.*s' is no name of a host", (int)host_len, host);
        out->host[i] = (char)tolower ((unsigned char)host[i]);
    }
    if (!colon)
        return 0;
    char digits[8];
    uint64_t port = 0;
    snprintf (digits, sizeof digits, "%.*s", (int)(end - colon - 1 < 7 ? end - colon - 1 : 7),
              colon + 1);
    if (uint_parse (digits, "port", 1, UINT16_MAX, &port, NULL) != 0)
        return err_set (err, ERR_INVALID, "port '%s': wanted 1 to %d", digits, UINT16_MAX);
    out->port = (uint16_t)port;
    return 0;
}

char *stage_sent_url (const uint8_t sha256[STAGE_SHA256_LEN], char out[STAGE_SENT_URL_MAX])
{
    memcpy (out, "nui:///", 8);
    for (size_t i = 0; i < STAGE_SHA256_LEN; i++)
        snprintf (out + 7 + 2 * i, 3, "%02x", sha256[i]);
    return out;
}

bool stage_sent_parse (const char *url, uint8_t sha256_out[STAGE_SHA256_LEN])
{
    const char *hex = strncmp (url, "nui:///", 7) == 0 ? url + 7 : "";
    if (strlen (hex) != 2 * (size_t)STAGE_SHA256_LEN ||
        strspn (hex, "0123456789abcdef") != 2 * (size_t)STAGE_SHA256_LEN)
        return false;
    for (size_t i = 0; i < STAGE_SHA256_LEN; i++)
        sha256_out[i] = (uint8_t)(hex_digit (hex[2 * i]) * 16 + hex_digit (hex[2 * i + 1]));
    return true;
}

/* Also through %2e. */
static bool has_dotdot (const char *path)
{
    unsigned dots = 0;
    bool others = false;
    for (const char *p = path;; p++) {
        int c = (unsigned char)*p;
        if (c == '%') {
            c = hex_digit (p[1]) * 16 + hex_digit (p[2]);
            p += 2;
        }
        if (c == '/' || c == 0) {
            if (dots == 2 && !others)
                return true;
            dots = 0;
            others = false;
            if (c == 0)
                return false;
        } else if (c == '.') {
            dots++;
        } else {
            others = true;
        }
    }
}

static int text_check (const char *text, struct err *err)
{
    if (strlen (text) >= STAGE_URL_MAX)
        return err_set (err, ERR_INVALID, "a URL has at most %d characters", STAGE_URL_MAX - 1);
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '"' || *p == '\\')
            return err_set (
                err, ERR_INVALID,
                "blanks, quotes, backslashes and control characters are written %%XX in a URL");
        if (*p == '%' &&
            (hex_digit (p[1]) < 0 || hex_digit (p[2]) < 0 || (p[1] == '0' && p[2] == '0')))
            return err_set (err, ERR_INVALID, "'%.3s' is no character written as %%XX", p);
        if (*p == '#')
            return err_set (err, ERR_INVALID,
                            "a part after '#' means nothing here; the character is written %%23");
    }
    return 0;
}

static int url_parse (const char *text, struct stage_url *out, struct err *err)
{
    int rc = text_check (text, err);
    if (rc != 0)
        return rc;
    const char *rest = strstr (text, "://");
    size_t count = sizeof schemes / sizeof *schemes, s = 0;
    while (rest && s < count &&
           (strlen (schemes[s].name) != (size_t)(rest - text) ||
            strncasecmp (schemes[s].name, text, (size_t)(rest - text)) != 0))
        s++;
    if (!rest || s == count)
        return err_set (err, ERR_INVALID, "wanted https://, http://, sftp://, s3:// or file://");
    out->scheme = (enum stage_scheme)s;
    out->port = schemes[s].port;
    rest += 3;
    size_t authority = strcspn (rest, "/?");
    out->path = rest + authority;
    uint8_t sum[STAGE_SHA256_LEN];
    if (out->scheme == STAGE_SENT)
        return stage_sent_parse (text, sum)
                   ? 0
                   : err_set (err, ERR_INVALID, "wanted nui:/// and 64 hexadecimal digits");
    if (out->scheme == STAGE_FILE ? authority != 0 : authority == 0)
        return err_set (err, ERR_INVALID,
                        out->scheme == STAGE_FILE ? "wanted file:///PATH, without a host"
                                                  : "it names no host");
    if (authority && (rc = authority_parse (rest, authority, out, err)) != 0)
        return rc;
    bool web = out->scheme == STAGE_HTTP || out->scheme == STAGE_HTTPS;
    if (out->path[0] != '/' ||
        (!web && (out->path[1] == 0 || out->path[strlen (out->path) - 1] == '/')))
        return err_set (err, ERR_INVALID, "it names no file after the host");
    if (!web && strchr (out->path, '?'))
        return err_set (err, ERR_INVALID, "'?' in the name of a file is written %%3F");
    if (!web && has_dotdot (out->path))
        return err_set (err, ERR_INVALID, "'..' is not followed");
    if (out->scheme == STAGE_S3 && out->port)
        return err_set (err, ERR_INVALID, "wanted s3://BUCKET/KEY; the endpoint is the site's");
    return 0;
}

int stage_url_parse (const char *text, struct stage_url *out, struct err *err)
{
    char shown[200];
    *out = (struct stage_url){.path = ""};
    int rc = url_parse (text, out, err);
    if (rc != 0)
        err_prefix (err, "URL '%s'", stage_url_show (text, shown, sizeof shown));
    return rc;
}

static bool name_fits (const char *name, size_t len)
{
    static const char part[] = ".part";
    size_t tail = sizeof part - 1;
    return len > 0 && !(len == 1 && name[0] == '.') &&
           !(len == 2 && name[0] == '.' && name[1] == '.') && len <= 200 &&
           !(len >= 4 && strncmp (name, ".nui", 4) == 0) &&
           !(len >= tail && strncmp (name + len - tail, part, tail) == 0);
}

int stage_path_check (const char *path, struct err *err)
{
    size_t len = strlen (path);
    if (len == 0 || len >= STAGE_PATH_MAX)
        return err_set (err, ERR_INVALID, "path of a staged file: wanted 1 to %d characters",
                        STAGE_PATH_MAX - 1);
    for (const char *p = path; *p; p++)
        if (iscntrl ((unsigned char)*p))
            return err_set (err, ERR_INVALID, "path of a staged file: no control characters");
    for (const char *name = path;; name++) {
        size_t n = strcspn (name, "/");
        if (!name_fits (name, n))
            return err_set (
                err, ERR_INVALID,
                "path '%s': wanted plain names below the job's directory (no leading '/', "
                "no '..', no '//', none of over 200 characters, '.nui…' or '….part')",
                path);
        name += n;
        if (!*name)
            return 0;
    }
}

int stage_names_check (const char *path, struct err *err)
{
    size_t len = strlen (path);
    bool fits = len > 0 && len < STAGE_PATH_MAX;
    for (const char *name = path; fits; name++) {
        size_t n = strcspn (name, "/");
        fits = n > 0 && n < 256 && !(n == 1 && name[0] == '.') && strncmp (name, "../", 3) != 0 &&
               strcmp (name, "..") != 0;
        for (size_t i = 0; i < n; i++)
            fits = fits && !iscntrl ((unsigned char)name[i]);
        name += n;
        if (!*name)
            break;
    }
    return fits ? 0
                : err_set (err, ERR_INVALID,
                           "'%.200s' is no name of a file below the job's directory (no leading "
                           "'/', no '.', no '..', no '//')",
                           path);
}

int stage_checksum_parse (const char *text, uint8_t sha256_out[STAGE_SHA256_LEN], struct err *err)
{
    const char *hex = strncmp (text, "sha256:", 7) == 0 ? text + 7 : "";
    bool fits = strlen (hex) == 2 * (size_t)STAGE_SHA256_LEN;
    for (size_t i = 0; fits && i < STAGE_SHA256_LEN; i++) {
        int high = hex_digit (hex[2 * i]), low = hex_digit (hex[2 * i + 1]);
        fits = high >= 0 && low >= 0;
        sha256_out[i] = (uint8_t)(high * 16 + low);
    }
    return fits ? 0
                : err_set (err, ERR_INVALID,
                           "checksum '%.80s': wanted sha256: and 64 hexadecimal digits", text);
}

char *stage_index_put (const char *text, uint32_t index)
{
    static const char mark[] = "{index}";
    struct strbuf b = STRBUF_INIT;
    for (const char *at; (at = strstr (text, mark)); text = at + sizeof mark - 1) {
        strbuf_append (&b, text, (size_t)(at - text));
        strbuf_printf (&b, "%u", index);
    }
    strbuf_puts (&b, text);
    return strbuf_steal (&b);
}
