/* daemon_room: what a daemon does when the file system of its state is full.
 *
 * A file of its own, STATEDIR/ballast, holds room that nobody else can take. Once little is left it is given up, so
 * that the daemon can go on writing what it must (ends of jobs, what the bank is owed) and can be started; while
 * it is so no new work is taken (daemon_room_check), and everything else goes on. Once there is room again the file is
 * made anew. What is written to the database has room of its own besides (store_reserve). Called by daemon.c;
 * never stops the program. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/rpc/daemon_i.h"

enum { MIB = 1 << 20, BALLAST_MIB = 16, TIGHT_MIB = 8, ENOUGH_MIB = 2 * (BALLAST_MIB + TIGHT_MIB) };

static void room_path (const struct daemon_room *room, char *out, size_t cap)
{
    snprintf (out, cap, "%s/ballast", room->dir);
}

/* What this process could still write; -1: not known. */
static int64_t room_free_mib (const struct daemon_room *room)
{
    struct statvfs fs;
    if (statvfs (room->dir, &fs) != 0)
        return -1;
    return (int64_t)((geteuid () == 0 ? fs.f_bfree : fs.f_bavail) * (uint64_t)fs.f_frsize / MIB);
}

static void room_ballast_make (struct daemon_room *room)
{
    char path[4200];
    room_path (room, path, sizeof path);
    int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    room->ballast = posix_fallocate (fd, 0, (off_t)BALLAST_MIB * MIB) == 0;
    close (fd);
    if (!room->ballast)
        unlink (path);
}

bool daemon_room_look (struct daemon_room *room)
{
    char path[4200];
    int64_t left = room_free_mib (room);
    bool was = room->tight;
    room_path (room, path, sizeof path);
    if (left >= 0 && left < TIGHT_MIB) {
        room->tight = true;
        unlink (path); /* also one that an earlier process of ours left */
        room->ballast = false;
    } else if (left >= ENOUGH_MIB || left < 0 || (room->ballast && !room->tight)) {
        room->tight = false;
        if (!room->ballast)
            room_ballast_make (room);
    }
    return room->tight != was;
}

void daemon_room_open (struct daemon_room *room, const char *dir)
{
    *room = (struct daemon_room){.dir = strdup (dir)};
    assert (room->dir);
    daemon_room_look (room);
}

void daemon_room_close (struct daemon_room *room)
{
    free (room->dir);
    room->dir = NULL;
}

int daemon_room_check (struct daemon_room *room, struct err *err)
{
    daemon_room_look (room);
    if (!room->tight)
        return 0;
    return err_set (
        err, ERR_UNAVAILABLE,
        "no new work is taken: the file system of %s is full; what is under way goes on",
        room->dir);
}
