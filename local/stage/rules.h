/* rules: what the configuration says of staging, checked and ready; shared by what was begun under
 * it, so that a reload changes nothing under way. */
#ifndef NUI_LOCAL_STAGE_RULES_H
#define NUI_LOCAL_STAGE_RULES_H

#include "local/stage/credentials.h"
#include "local/stage/hosts.h"
#include "local/stage/stage.h"

struct rules {
    unsigned owners;
    struct hosts *hosts;
    struct credentials *credentials;
    char **root; /* without symbolic links, without a '/' at the end */
    uint32_t root_count;
    char *known_hosts, *ca;    /* NULL: none, the system's */
    struct stage_config limit; /* numbers only, defaults filled in */
};

int rules_read (const struct stage_config *config, struct rules **out, struct err *err);
struct rules *rules_share (struct rules *rules);
void rules_drop (struct rules *rules); /* NULL is a no-op */

enum { RULES_WIRE_URL_MAX = 3 * STAGE_URL_MAX + 1024 };

/* Where the bytes of a URL really go. */
struct wire {
    enum stage_scheme scheme; /* HTTP, HTTPS, SFTP, FILE or SENT, which has no more than that */
    bool s3;
    char url[RULES_WIRE_URL_MAX];        /* for libcurl; FILE: the decoded path */
    char host[STAGE_HOST_MAX];           /* "" of FILE */
    const struct credential *credential; /* the rules'; NULL: none */
};

/* By roots, names of hosts, credentials; ERR_DENIED, ERR_UNSUPPORTED, ERR_INVALID. No I/O. */
int rules_wire (const struct rules *rules, const char *url, const char *user, struct wire *out,
                struct err *err);
/* Where a redirect from the wire leads to: only to what the first URL could have been, the same
 * kind of protocol and a host that is allowed; the credentials are that host's. `location` is cut
 * at its '#'. wire: replaced on success. */
int rules_redirect (const struct rules *rules, char *location, const char *user, struct wire *wire,
                    struct err *err);
/* The %XX of a path that stage_url_parse took as characters. */
void rules_decode (const char *path, char *out, size_t cap);
/* Of a path that rules_wire took: the root, and the path below it. */
const char *rules_root_of (const struct rules *rules, const char *path, const char **below_out);

#endif
