/* credentials: what the site shows to others' servers, from a file that only the daemon may read
 * (STAGECREDENTIALS; stagecredentials(5)), in the syntax of all our configuration:
 *
 *     STAGECRED[1] TYPE=BEARER HOST=data.example.org TOKEN=eyJh…
 *     STAGECRED[2] TYPE=BASIC HOST=*.example.org LOGIN=nui PASSWORD=…
 *     STAGECRED[3] TYPE=HEADER HOST=data.example.org USER=nui://grid/user/alice HEADER="X-Auth-Token: …"
 *     STAGECRED[4] TYPE=SFTP HOST=dtn.example.org LOGIN=nui KEY=/etc/nui/stage_key
 *     STAGECRED[5] TYPE=S3 ENDPOINT=https://s3.example.org:9000 BUCKET=run* REGION=eu ACCESS=… SECRET=… SESSION=…
 *
 * HOST: a shell pattern for the host, or for HOST:PORT; BUCKET likewise. USER: only for that grid identity;
 * a row of a user goes before one without, else the first in the file that fits. BEARER, BASIC and HEADER
 * are only shown over https. S3 without ACCESS asks unsigned. LOGIN of SFTP: the URL must name it or none. */
#ifndef NUI_LOCAL_STAGE_CREDENTIALS_H
#define NUI_LOCAL_STAGE_CREDENTIALS_H

#include "proto/base/err.h"
#include "proto/base/stagespec.h"

enum credential_type { CREDENTIAL_BEARER, CREDENTIAL_BASIC, CREDENTIAL_HEADER, CREDENTIAL_SFTP, CREDENTIAL_S3 };

struct credential {
    const char *name; /* in the brackets */
    int type;         /* enum credential_type; -1: not said */
    const char *host, *user, *bucket;
    const char *token, *login, *password, *header;
    const char *key;                 /* path of a private key */
    const char *endpoint, *region, *access, *secret, *session;
};

struct credentials;

/* path NULL: none at all. ERR_DENIED: it belongs to another or others can read it, as a KEY; ERR_INVALID
 * without a value in the text. */
int credentials_read (const char *path, struct credentials **out, struct err *err);
void credentials_free (struct credentials *credentials); /* NULL is a no-op */
/* What fits a URL and a grid identity (NULL: nobody's); NULL: nothing. */
const struct credential *credentials_find (const struct credentials *credentials,
                                           const struct stage_url *url, const char *user);

#endif
