/* process_use: reads /proc and cgroup files. rm_embedded.c and the supervisor call it. It must
 * stay with libc, since the supervisor runs as root. A process may end while it is read: what is
 * missing then counts as nothing. */
#include "local/rm/embedded/process_use.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

int64_t cpu_time_cgroup (const char *path)
{
    char name[4200], line[128];
    long long used;
    int64_t found = -1;
    snprintf (name, sizeof name, "%s/cpu.stat", path);
    FILE *f = fopen (name, "re");
    while (f && found < 0 && fgets (line, sizeof line, f))
        if (sscanf (line, "usage_usec %lld", &used) == 1)
            found = used;
    if (f)
        fclose (f);
    return found;
}

/* Fields 14 to 17 of /proc/PID/stat: own (user and system), and of children waited for. */
static bool stat_times (pid_t pid, int64_t *own, int64_t *waited)
{
    char path[64], text[1024];
    unsigned long utime, stime;
    long cutime, cstime;
    snprintf (path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen (path, "re");
    size_t n = f ? fread (text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose (f);
    text[n] = 0;
    const char *p = strrchr (text, ')'); /* the command may hold anything */
    if (!p || sscanf (p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &utime,
                      &stime, &cutime, &cstime) != 4)
        return false;
    int64_t tick_us = 1000000 / sysconf (_SC_CLK_TCK);
    *own = (int64_t)(utime + stime) * tick_us;
    *waited = (int64_t)(cutime + cstime) * tick_us;
    return true;
}

/* What one process has, over all living descendants: the kernel lists children by the thread that forked them. */
static int64_t sum_below (pid_t pid, int depth, int64_t (*one) (pid_t pid))
{
    char path[64];
    int64_t sum = 0;
    long child;
    struct dirent *e;
    snprintf (path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir (path);
    while (tasks && (e = readdir (tasks))) {
        snprintf (path, sizeof path, "/proc/%ld/task/%.20s/children", (long)pid, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen (path, "re");
        while (f && fscanf (f, "%ld", &child) == 1) {
            sum += one ((pid_t)child);
            if (depth < DEPTH_MAX)
                sum += sum_below ((pid_t)child, depth + 1, one);
        }
        if (f)
            fclose (f);
    }
    if (tasks)
        closedir (tasks);
    return sum;
}

static int64_t times_of (pid_t pid)
{
    int64_t own, waited;
    return stat_times (pid, &own, &waited) ? own + waited : 0;
}

/* Field 2 of /proc/PID/statm. */
static int64_t resident_pages (pid_t pid)
{
    char path[64];
    long long resident = 0;
    snprintf (path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *f = fopen (path, "re");
    if (f && fscanf (f, "%*u %lld", &resident) != 1)
        resident = 0;
    if (f)
        fclose (f);
    return resident;
}

int64_t cpu_time_below (pid_t pid)
{
    int64_t own, waited;
    if (!stat_times (pid, &own, &waited))
        return -1;
    return waited + sum_below (pid, 0, times_of);
}

int64_t memory_below_mb (pid_t pid)
{
    int64_t bytes = sum_below (pid, 0, resident_pages) * sysconf (_SC_PAGESIZE);
    return (bytes + (1 << 20) - 1) >> 20;
}
