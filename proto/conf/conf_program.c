/* Whether a program that a file names may be run. Called where the file is read and again before each run; nothing is run
 * here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/conf/conf.h"

static int part_check (const char *name, const char *part, struct err *err)
{
    struct stat st;
    if (stat (part, &st) != 0)
        return err_set (err, ERR_INVALID, "%s %.300s: %s", name, part, strerror (errno));
    bool sticky = S_ISDIR (st.st_mode) && (st.st_mode & S_ISVTX);
    if (st.st_uid != 0 && st.st_uid != geteuid ())
        return err_set (err, ERR_DENIED, "%s: %.300s is not root's: whoever owns it would run programs as root",
                        name, part);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !sticky)
        return err_set (err, ERR_DENIED, "%s: %.300s can be written by others than root", name, part);
    return 0;
}

int conf_program_check (const char *name, const char *path, struct err *err)
{
    char *whole = realpath (path, NULL);
    int rc = whole ? part_check (name, whole, err)
                   : err_set (err, ERR_INVALID, "%s %.300s: %s", name, path, strerror (errno));
    for (char *slash = whole ? strrchr (whole, '/') : NULL; rc == 0 && slash; slash = strrchr (whole, '/')) {
        *slash = 0;
        rc = part_check (name, *whole ? whole : "/", err);
    }
    free (whole);
    return rc;
}
