/* outfile: a result file that is there whole or not at all: written under another name beside its
 * place, synced, and moved over it. */
#ifndef NUI_LOCAL_SIM_OUTFILE_H
#define NUI_LOCAL_SIM_OUTFILE_H

#include "proto/base/strbuf.h"

#include "proto/base/err.h"

/* Whether path could be written, before hours of work go into what should stand there. */
int outfile_check (const char *path, struct err *err);

enum { OUTFILES_MAX = 8 };

/* Some files that belong together: all are written beside their places before the first is moved.
 */
struct outfiles {
    unsigned count;
    struct {
        const char *path;
        struct strbuf text;
    } file[OUTFILES_MAX];
};

/* The text of a new file, to be filled. path must outlive the set. */
struct strbuf *outfiles_add (struct outfiles *files, const char *path);
int outfiles_commit (struct outfiles *files, struct err *err);
void outfiles_free (struct outfiles *files);

#endif
