#include "tests/bench/bank/tape.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"

enum { PAIRS_MAX = 16, BLOCK = 1 << 16 };

struct tape {
    char dir[64], file[96], server_dir[64];
    pid_t pid;
};

/* ---- the recorder ---- */

struct pair {
    int client, server; /* -1: free */
    bool begun, kept;   /* its first bytes were seen; it is the committer's */
};

static struct sockaddr_un address_of (const char *dir)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf (a.sun_path, sizeof a.sun_path, "%s/.s.PGSQL.5432", dir);
    assert (n > 0 && (size_t)n < sizeof a.sun_path);
    return a;
}

static int server_connect (const char *dir)
{
    struct sockaddr_un a = address_of (dir);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect (fd, (struct sockaddr *)&a, sizeof a) != 0)
        abort ();
    return fd;
}

static void write_all (int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return; /* the other side went: reading from it says so */
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* False at the end of either side. */
static bool pump (struct pair *p, bool from_client, int file)
{
    static char block[BLOCK];
    ssize_t n = read (from_client ? p->client : p->server, block, sizeof block);
    if (n <= 0)
        return false;
    if (from_client && !p->begun) { /* the startup message says who it is */
        if (memmem (block, (size_t)n, "nui-bank second committer", 25))
            return false; /* refused: the first writes it all then */
        p->begun = true;
        p->kept = memmem (block, (size_t)n, "nui-bank committer", 18) != NULL;
    }
    if (from_client && p->kept)
        write_all (file, block, (size_t)n);
    write_all (from_client ? p->server : p->client, block, (size_t)n);
    return true;
}

static void take (struct pair pair[PAIRS_MAX], int listener, const char *server_dir)
{
    for (int i = 0; i < PAIRS_MAX; i++)
        if (pair[i].client < 0) {
            pair[i] = (struct pair){.client = accept (listener, NULL, NULL),
                                    .server = server_connect (server_dir)};
            return;
        }
    abort ();
}

static void record (int listener, int file, const char *server_dir)
{
    struct pair pair[PAIRS_MAX];
    struct pollfd p[1 + 2 * PAIRS_MAX];
    for (int i = 0; i < PAIRS_MAX; i++)
        pair[i] = (struct pair){.client = -1, .server = -1};
    for (;;) {
        p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < PAIRS_MAX; i++) {
            p[1 + 2 * i] = (struct pollfd){.fd = pair[i].client, .events = POLLIN};
            p[2 + 2 * i] = (struct pollfd){.fd = pair[i].server, .events = POLLIN};
        }
        if (poll (p, 1 + 2 * PAIRS_MAX, -1) < 0)
            continue;
        for (int i = 0; i < PAIRS_MAX; i++) {
            bool good = (!p[1 + 2 * i].revents || pump (&pair[i], true, file)) &&
                        (!p[2 + 2 * i].revents || pump (&pair[i], false, file));
            if (good)
                continue;
            close (pair[i].client);
            close (pair[i].server);
            pair[i] = (struct pair){.client = -1, .server = -1};
        }
        if (p[0].revents)
            take (pair, listener, server_dir);
    }
}

struct tape *tape_record (const char *server_dir)
{
    struct tape *tape = calloc (1, sizeof *tape);
    const char *tmp = getenv ("TMPDIR");
    assert (tape);
    snprintf (tape->dir, sizeof tape->dir, "%s/nui-tape-XXXXXX",
              tmp && strlen (tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp (tape->dir))
        abort ();
    snprintf (tape->file, sizeof tape->file, "%s/tape", tape->dir);
    snprintf (tape->server_dir, sizeof tape->server_dir, "%s", server_dir);
    struct sockaddr_un a = address_of (tape->dir);
    int listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int file = open (tape->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (listener < 0 || file < 0 || bind (listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen (listener, PAIRS_MAX) != 0)
        abort ();
    pid_t parent = getpid ();
    tape->pid = fork ();
    assert (tape->pid >= 0);
    if (tape->pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        if (getppid () == parent)
            record (listener, file, server_dir);
        _exit (0);
    }
    close (listener);
    close (file);
    return tape;
}

const char *tape_dir (const struct tape *tape)
{
    return tape->dir;
}

void tape_end (struct tape *tape)
{
    if (tape->pid <= 0)
        return;
    kill (tape->pid, SIGKILL);
    while (waitpid (tape->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    tape->pid = 0;
}

void tape_destroy (struct tape *tape)
{
    if (!tape)
        return;
    tape_end (tape);
    unlink (tape->file);
    unlink (address_of (tape->dir).sun_path);
    rmdir (tape->dir);
    free (tape);
}

/* ---- playing ---- */

struct answers {
    uint8_t head[5]; /* of the message at hand: its type, its length */
    size_t head_len, body_left, body_at;
    uint8_t body[16]; /* its beginning */
    int32_t backend;
    duration_us first, last; /* COMMIT */
    double cpu_first, cpu_last;
    struct tape_result result;
};

static double backend_us (int32_t pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf (path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen (path, "r");
    if (f && fgets (line, sizeof line, f) && strrchr (line, ')'))
        sscanf (strrchr (line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                &user, &system);
    if (f)
        fclose (f);
    return (double)(user + system) * 1e6 / (double)sysconf (_SC_CLK_TCK);
}

static uint32_t number_at (const uint8_t *at)
{
    uint32_t v;
    memcpy (&v, at, sizeof v);
    return ntohl (v);
}

static void message_ended (struct answers *a)
{
    uint8_t type = a->head[0];
    if (type == 'K')
        a->backend = (int32_t)number_at (a->body);
    if (type == 'E')
        a->result.errors++;
    if (type != 'C' || memcmp (a->body, "COMMIT", 7) != 0)
        return;
    a->last = clock_monotonic_us ();
    double cpu = backend_us (a->backend);
    a->cpu_last = cpu > 0 ? cpu : a->cpu_last; /* it may have ended */
    if (a->result.commits++ == 0) {
        a->first = a->last;
        a->cpu_first = a->cpu_last;
    }
}

static void answers_take (struct answers *a, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (a->head_len < sizeof a->head) {
            a->head[a->head_len++] = bytes[i];
            a->body_at = 0;
            if (a->head_len < sizeof a->head)
                continue;
            a->body_left = number_at (a->head + 1) - 4;
        } else {
            if (a->body_at < sizeof a->body)
                a->body[a->body_at++] = bytes[i];
            a->body_left--;
        }
        if (a->body_left == 0) {
            message_ended (a);
            a->head_len = 0;
        }
    }
}

static char *whole (const char *path, size_t *len)
{
    struct stat st;
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat (fd, &st) != 0)
        abort ();
    char *bytes = malloc ((size_t)st.st_size + 1);
    assert (bytes);
    for (*len = 0; *len < (size_t)st.st_size;) {
        ssize_t n = read (fd, bytes + *len, (size_t)st.st_size - *len);
        if (n <= 0)
            abort ();
        *len += (size_t)n;
    }
    close (fd);
    return bytes;
}

struct tape_result tape_play (const struct tape *tape, const char *from, const char *to)
{
    static uint8_t block[BLOCK];
    struct answers a = {0};
    size_t len, sent = 0;
    char *bytes = whole (tape->file, &len);
    char *name = memmem (bytes, len < 200 ? len : 200, from, strlen (from) + 1);
    assert (tape->pid == 0 && name && strlen (from) == strlen (to));
    memcpy (name, to, strlen (to)); /* in the startup message */
    int fd = server_connect (tape->server_dir);
    fcntl (fd, F_SETFL, O_NONBLOCK);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = sent < len ? POLLIN | POLLOUT : POLLIN};
        if (poll (&p, 1, -1) < 0)
            continue;
        if (p.revents & POLLOUT) {
            ssize_t n = send (fd, bytes + sent, len - sent, MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            if (sent == len)
                shutdown (fd, SHUT_WR); /* the server ends when it has done all */
        }
        if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
            ssize_t n = read (fd, block, sizeof block);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                break;
            answers_take (&a, block, n > 0 ? (size_t)n : 0);
        }
    }
    close (fd);
    free (bytes);
    a.result.seconds = (double)(a.last - a.first) / 1e6;
    a.result.postgres_us = a.cpu_last - a.cpu_first;
    if (sent < len)
        a.result.errors++;
    return a.result;
}
