/* runfiles: the files of a run's working directory, as they go from one host to another. The account owns all that lies
 * there and may change it at any moment: nothing is followed, and only its own plain files are read or written. Blocking.
 * Limits: RUNFILES_MAX files, RUNFILES_DEPTH_MAX folders deep. */
#ifndef NUI_LOCAL_RM_EMBEDDED_RUNFILES_H
#define NUI_LOCAL_RM_EMBEDDED_RUNFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "proto/base/err.h"

enum { RUNFILES_MAX = 100000, RUNFILES_DEPTH_MAX = 32, RUNFILES_PIECE = 1 << 20 };

enum runfile_kind { RUNFILE_PLAIN, RUNFILE_DIRECTORY, RUNFILE_LINK };

struct runfile {
    char *path;   /* below the working directory */
    char *target; /* of a link; NULL */
    enum runfile_kind kind;
    uint32_t mode; /* of its bits, those for access */
    int64_t size;
};

struct runfiles {
    struct runfile *file;
    uint32_t count;
};

/* Folders before what is in them. since: only plain files and links that were changed after it; NULL: all. */
int runfiles_list (int work, const struct timespec *since, struct runfiles *out, struct err *err);
void runfiles_free (struct runfiles *files);

/* At most RUNFILES_PIECE bytes at offset; 0: it ends there. ERR_NOT_FOUND: there is no such plain file. */
int runfiles_read (int work, const char *path, int64_t offset, void *out, size_t *len_out,
                   struct err *err);
/* A piece of a file, or a whole folder or link; it is uid's then. offset 0 begins a plain file anew. */
int runfiles_write (int work, const struct runfile *file, int64_t offset, const void *bytes,
                    size_t len, uid_t uid, gid_t gid, struct err *err);

#endif
