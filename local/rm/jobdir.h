/* jobdir: the directory of a job that came through the grid, `alpha.17` (restarts: `alpha.17-1`),
 * with spec    what is to run, for whoever runs it; root's work/   0700, the mapped account's:
 * script, nodefile, stdout, stderr Shared by the resource managers; it is there complete or not at
 * all. Blocking, durable. */
#ifndef NUI_LOCAL_RM_JOBDIR_H
#define NUI_LOCAL_RM_JOBDIR_H

#include <pwd.h>
#include <stddef.h>

#include "local/rm/rm.h"
#include "proto/base/log.h"
#include "proto/base/strbuf.h"

enum { JOBDIR_KEY_MAX = 96, JOBDIR_START_MAX = 5300 };

/* Name of the directory. */
void jobdir_key (const char *job_id, uint32_t incarnation, char out[JOBDIR_KEY_MAX]);
/* An account that jobs may run as: it exists, is not root and, when we are not root, our own.
 * ERR_DENIED. buf holds pw's strings. */
int jobdir_account (const char *name, struct passwd *pw, char *buf, size_t cap, struct err *err);
const char *jobdir_or (const char *name, const char *otherwise); /* for NULL and "" */
/* What is checked before a job is taken: its id, account and output names (plain file names that
 * are none of ours), its script. Fills key, and pw, whose strings are in buf. ERR_INVALID, ERR_DENIED. */
int jobdir_check (const struct rm_job *job, struct passwd *pw, char *buf, size_t cap,
                  char key[JOBDIR_KEY_MAX], struct err *err);
/* The folder of all of them, made where it is not: its path, absolute and malloc'ed, and an open
 * descriptor. */
int jobdir_parent (const char *path, char **path_out, int *fd_out, struct err *err);
/* "key=value" and its NUL. */
void jobdir_spec_add (struct strbuf *b, const char *key, const char *value);
/* What every resource manager's spec says of a job: job_id, mark, hold, account, uid, stdout, stderr. */
void jobdir_spec_begin (struct strbuf *b, const struct rm_job *job, const struct passwd *pw);
bool jobdir_env_has (const struct rm_job *job, const char *name); /* sets it itself */
/* Where it starts, ~ being its account's home; NULL: in its own directory. */
const char *jobdir_start (const struct rm_job *job, const struct passwd *pw,
                          char out[JOBDIR_START_MAX]);
/* Of a shell's script whose directory is the job's own, the end: enters the directory where it starts, and is the
 * script of the job with its arguments. Where it cannot be entered it leaves .chdir behind (mistake.h), and is 126. */
void jobdir_shell_run (struct strbuf *b, const struct rm_job *job, const struct passwd *pw);
/* Variables that a job gets which does not set them itself. */
void jobdir_env_each (const struct rm_job *job, const char *parent, const char *key,
                      const struct passwd *pw,
                      void (*fn) (void *arg, const char *name, const char *value), void *arg);
/* A directory of that name that is another job's (see rm.h: mark) gets another name, KEY.aside-1 …, with what
 * CHECKPOINTHOOK left beside it, and stays there for an administrator to look at; the log says so.
 * ERR_EXISTS: it is this job's own. */
int jobdir_make_way (int parent, const struct rm_job *job, const char *key, struct log *log,
                     struct err *err);
/* Makes it in `parent`. spec: NUL-terminated "key=value" strings; stdout=, stderr= and uid= are
 * read by jobdir_output_open. */
int jobdir_make (int parent, const struct rm_job *job, const char *key, const struct passwd *pw,
                 const char *spec, size_t spec_len, struct err *err);
/* An open directory, or -1: ERR_NOT_FOUND, also where it is not ours or has another mark; ERR_IO. */
int jobdir_open (int parent, const char *job_id, uint32_t incarnation, const char *mark,
                 struct err *err);
/* A run that was handed over and of which no end is in its directory. */
struct jobdir_left {
    uint64_t number;
    const char *job_id, *mark, *hold; /* of the bank; "": none */
    uint32_t incarnation;
};
/* Every one of the site. Strings hold during the call. */
void jobdir_left_each (const char *parent, const char *site,
                       void (*fn) (void *arg, const struct jobdir_left *left), void *arg);
/* The directory of that name is of a run that nobody knows, and that has ended: it is not told of again. */
void jobdir_left_over (const char *parent, const char *key);
/* The highest number that any job of the site has, or had, a directory of; 0: none. */
uint64_t jobdir_number_max (const char *parent, const char *site);
/* rm_ops.output_open. */
int jobdir_output_open (int parent, const char *job_id, uint32_t incarnation, const char *mark,
                        const char *stream, struct err *err);

#endif
