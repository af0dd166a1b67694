/* userfile: files below a folder, reached as the account that they belong to.
 *
 * A daemon that is root switches its thread's file-system identity (setfsuid, groups) for each
 * call, so that the system's own checks hold, quotas count, and file systems that do not trust root
 * work. No symbolic link is followed anywhere below the folder. Blocking, short. */
#ifndef NUI_LOCAL_STAGE_USERFILE_H
#define NUI_LOCAL_STAGE_USERFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "proto/base/err.h"

struct userfile_account {
    uid_t uid;
    gid_t gid;
    gid_t *group; /* malloc'ed */
    int group_count;
};

/* ERR_DENIED: unknown, root, or another than our own when we are not root. */
int userfile_account_get (const char *name, struct userfile_account *out, struct err *err);
void userfile_account_free (struct userfile_account *account);

/* A plain file to read; ERR_NOT_FOUND, ERR_DENIED. own: it must belong to the account. */
int userfile_read (const struct userfile_account *account, int dir, const char *path, bool own,
                   int *fd_out, struct stat *st, struct err *err);

/* Each plain file below the folder that the account may see, USERFILE_DEPTH folders deep; links are passed over. In steps of
 * so many entries, since a folder may have any number. */
enum { USERFILE_DEPTH = 32 };
typedef bool (*userfile_fn) (void *arg, const char *path,
                             const struct stat *st); /* false: no more */
struct userfile_walk;
/* The account outlives it; dir need not. NULL with ERR_IO. */
struct userfile_walk *userfile_walk_begin (const struct userfile_account *account, int dir,
                                           struct err *err);
/* False: that was all, or fn has enough. */
bool userfile_walk_some (struct userfile_walk *walk, uint32_t entries, userfile_fn fn, void *arg);
/* Something was left out: fn had enough, or a folder was too deep or its name too long. */
bool userfile_walk_left (const struct userfile_walk *walk);
void userfile_walk_end (struct userfile_walk *walk); /* NULL is a no-op */

/* Where a file is made: beside its name, until it is whole. */
struct userfile {
    int folder, fd; /* open; -1 */
    char name[256], part[256];
    struct stat st; /* of fd when it was opened */
};
/* path's folders are made, and PATH.part where it is not; a part that is no plain file of the
 * account alone is replaced. */
int userfile_part_open (const struct userfile_account *account, int dir, const char *path,
                        struct userfile *out, struct err *err);
/* It may be run. */
int userfile_part_executable (const struct userfile_account *account, struct userfile *place,
                              struct err *err);
/* Gives it its name, durably. */
int userfile_part_finish (const struct userfile_account *account, struct userfile *place,
                          struct err *err);
void userfile_part_remove (const struct userfile_account *account, struct userfile *place);
void userfile_close (struct userfile *place);
/* The file of the name is the inode and size, whole already. */
bool userfile_is (const struct userfile *place, ino_t inode, off_t size);

#endif
