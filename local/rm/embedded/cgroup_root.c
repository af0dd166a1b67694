/* cgroup_root: the part of the cgroup tree in which jobs get their groups, made when the embedded runner begins. Nothing here
 * knows of jobs: nui-supervise makes and fills their groups. */
#include "local/rm/embedded/cgroup_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/supervise_file.h"
#include "proto/base/text.h"

static const char own_subgroup[] = "/nui-daemon";

/* Where cgroup v2 is mounted and where in it this process is; false when there is none. */
static bool cgroup_self (char *out, size_t cap)
{
    char mount[1024] = "", line[4096];
    FILE *f = fopen ("/proc/self/mounts", "re");
    while (f && fgets (line, sizeof line, f)) {
        char where[1024], type[64];
        if (sscanf (line, "%*s %1023s %63s", where, type) == 2 && strcmp (type, "cgroup2") == 0)
            snprintf (mount, sizeof mount, "%s", where);
    }
    if (f)
        fclose (f);
    f = *mount ? fopen ("/proc/self/cgroup", "re") : NULL;
    bool found = false;
    while (f && fgets (line, sizeof line, f))
        if (strncmp (line, "0::/", 4) == 0) {
            line[strcspn (line, "\n")] = 0;
            const char *own_path = strcmp (line + 3, "/") == 0 ? "" : line + 3;
            int n = snprintf (out, cap, "%s%s", mount, own_path);
            found = n > 0 && (size_t)n < cap;
        }
    if (f)
        fclose (f);
    /* The sub-group that our unit puts us in (DelegateSubgroup): jobs get theirs beside it. */
    size_t len = found ? strlen (out) : 0, tail = strlen (own_subgroup);
    if (len > tail && strcmp (out + len - tail, own_subgroup) == 0)
        out[len - tail] = 0;
    return found;
}

/* Which limits of jobs are kept by what; have: the controllers that jobs' groups get, "" none. */
void cgroup_limits_tell (struct log *log, const char *have)
{
    const char *by[] = {"rlimit", "cgroup"};
    log_event (
        log, LOG_LEVEL_INFO, "rm", "limits", "memory=%s processes=%s processors=%s%s",
        by[strstr (have, "memory") != NULL], by[strstr (have, "pids") != NULL],
        strstr (have, "cpu") ? "cgroup" : "rlimit_time",
        strstr (have, "memory") && strstr (have, "pids") && strstr (have, "cpu")
            ? ""
            : " text=\"an rlimit is for each process by itself, of processes for all of an account\"");
}

/* A subtree for the jobs; with limits where the controllers are given to us, else for killing only. */
char *cgroup_root_open (struct log *log, const char *name)
{
    char root[2048], path[3072], text[512] = "";
    if (!cgroup_self (root, sizeof root)) {
        log_event (log, LOG_LEVEL_WARN, "rm", "no_cgroup", "reason=\"no cgroup v2 is mounted\"");
        cgroup_limits_tell (log, "");
        return NULL;
    }
    snprintf (path, sizeof path, "%s/%s", root, name);
    if (mkdir (path, 0755) != 0 && errno != EEXIST) {
        log_event (log, LOG_LEVEL_WARN, "rm", "no_cgroup", "path=%s reason=\"%s\"", path,
                   strerror (errno));
        cgroup_limits_tell (log, "");
        return NULL;
    }
    char *made = strdup (path);
    size_t len = 0;
    const char *on = "+cpu +memory +pids";
    for (int level = 0; level < 2; level++) {
        snprintf (path, sizeof path, "%s/cgroup.subtree_control", level ? made : root);
        int fd = open (path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            if (write (fd, on, strlen (on)) < 0)
                text_printf (text, sizeof text, "%s", strerror (errno));
            close (fd);
        }
    }
    snprintf (path, sizeof path, "%s/cgroup.subtree_control", made);
    char *have = file_read_all (AT_FDCWD, path, &len);
    cgroup_limits_tell (log, have ? have : "");
    if (!have || !strstr (have, "memory"))
        log_event (log, LOG_LEVEL_WARN, "rm", "cgroup_without_limits",
                   "path=%s reason=\"%s: groups serve for killing only\"", made,
                   *text ? text : "no controllers");
    free (have);
    return made;
}
