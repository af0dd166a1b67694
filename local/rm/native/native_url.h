/* native_url: where the calls of RMCFG TYPE=NATIVE go.
 *
 *   exec:///usr/libexec/nui/adapter?jobstart    a program, with its first words
 *   file:///var/spool/nodes                     a list in a file (queries only)
 *   http://host:port/path                       asked (GET), or told (POST, arg=… for each word)
 *
 * Pure. */
#ifndef NUI_LOCAL_RM_NATIVE_URL_H
#define NUI_LOCAL_RM_NATIVE_URL_H

#include "local/rm/rm_kind.h"
#include "proto/base/arena.h"

enum { NATIVE_WORDS_MAX = 8 };

enum native_scheme { NATIVE_NOWHERE, NATIVE_EXEC, NATIVE_FILE, NATIVE_HTTP, NATIVE_WIKI };

struct native_url {
    enum native_scheme scheme;
    const char *text; /* of http: all of it; of Wiki: its server */
    /* of exec and file: program and first words */
    uint32_t word_count;
    const char *word[NATIVE_WORDS_MAX];
};

/* Of a call: its own attribute, or what ADAPTER makes of it; NOWHERE: neither is said. Strings are the arena's.
 * ERR_INVALID with a sentence. */
int native_url_of (const struct rm_options *options, enum rm_call call, struct arena *arena,
                   struct native_url *out, struct err *err);
/* "JOBSTARTURL". */
const char *native_url_name (enum rm_call call);

#endif
