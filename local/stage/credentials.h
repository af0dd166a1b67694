/* credentials: what the site shows to others' servers, from a file that only the daemon may read
 * (STAGECREDENTIALS). Its rows, and which of them is taken, are described in stagecredentials(5).
 * A row is shown over https only where it would be readable, and never told. */
#ifndef NUI_LOCAL_STAGE_CREDENTIALS_H
#define NUI_LOCAL_STAGE_CREDENTIALS_H

#include "proto/base/err.h"
#include "proto/job/stagespec.h"

enum credential_type {
    CREDENTIAL_BEARER,
    CREDENTIAL_BASIC,
    CREDENTIAL_HEADER,
    CREDENTIAL_SFTP,
    CREDENTIAL_S3
};

struct credential {
    const char *name; /* in the brackets */
    int type;         /* enum credential_type; -1: not said */
    const char *host, *user, *bucket;
    const char *token, *login, *password, *header;
    const char *key; /* path of a private key */
    const char *endpoint, *region, *access, *secret, *session;
};

struct credentials;

/* path NULL: none at all. ERR_DENIED: it belongs to another or others can read it, as a KEY;
 * ERR_INVALID without a value in the text. */
int credentials_read (const char *path, struct credentials **out, struct err *err);
void credentials_free (struct credentials *credentials); /* NULL is a no-op */
/* What fits a URL and a grid identity (NULL: nobody's); NULL: nothing. */
const struct credential *credentials_find (const struct credentials *credentials,
                                           const struct stage_url *url, const char *user);

#endif
