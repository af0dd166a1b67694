/* Whether a program that a file names may be run. Called where the file is read and again before each run; nothing is run
 * here. */
#include <errno.h>
#include <pwd.h>
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
        return err_set (err, ERR_DENIED,
                        "%s: %.300s is not root's: whoever owns it would run programs as root",
                        name, part);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !sticky)
        return err_set (err, ERR_DENIED, "%s: %.300s can be written by others than root", name,
                        part);
    return 0;
}

int conf_program_check (const char *name, const char *path, struct err *err)
{
    char *whole = realpath (path, NULL);
    int rc = whole ? part_check (name, whole, err)
                   : err_set (err, ERR_INVALID, "%s %.300s: %s", name, path, strerror (errno));
    for (char *slash = whole ? strrchr (whole, '/') : NULL; rc == 0 && slash;
         slash = strrchr (whole, '/')) {
        *slash = 0;
        rc = part_check (name, *whole ? whole : "/", err);
    }
    free (whole);
    return rc;
}

int conf_notify_check (const char *program, const char *account, const char *url, struct err *err)
{
    if (program && access (program, X_OK) != 0)
        return err_set (err, ERR_INVALID, "NOTIFICATIONPROGRAM %.200s cannot be executed: %s",
                        program, strerror (errno));
    if (program && conf_program_check ("NOTIFICATIONPROGRAM", program, err) != 0)
        return err->code;
    if (program && !getpwnam (account))
        return err_set (err, ERR_INVALID, "NOTIFICATIONACCOUNT %.60s: there is no such account",
                        account);
    if (url && strncmp (url, "http://", 7) != 0 && strncmp (url, "https://", 8) != 0)
        return err_set (err, ERR_INVALID, "NOTIFICATIONURL '%.100s': wanted http:// or https://",
                        url);
    return 0;
}
