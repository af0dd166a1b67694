/* What worlds stand on: see world.h. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/fuzz/handlers/world.h"

static char *folder;
static pid_t owner;

static int remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove (path);
}

static void ground_remove (void)
{
    if (folder && getpid () == owner)
        nftw (folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void ground_open (struct ground *ground)
{
    char path[256];
    if (!getenv ("TMPDIR") && access ("/dev/shm", W_OK) == 0)
        setenv ("TMPDIR", "/dev/shm", 1); /* nobody's disk is to wait for what is thrown away */
    *ground = (struct ground){.dir = testca_dir ()};
    folder = ground->dir;
    owner = getpid ();
    atexit (ground_remove);
    ground->ca = testca_create (ground->dir, "ca");
    static const char *const uri[][2] = {{"alice", "nui://test/user/alice"},
                                         {"bob", "nui://test/user/bob"}};
    for (int i = 0; i < 2; i++)
        testca_issue (ground->ca, &(struct testca_cert){.name = uri[i][0], .uri = uri[i][1]});
    ground->alice = testca_tlsid (ground->dir, "ca", "alice", false);
    ground->bob = testca_tlsid (ground->dir, "ca", "bob", false);
    snprintf (path, sizeof path, "%s/gridmap", ground->dir);
    FILE *f = fopen (path, "w");
    if (!f || fputs ("\"nui://test/user/alice\" games\n\"nui://test/user/bob\" nobody\n", f) < 0 ||
        fclose (f))
        abort ();
}

void ground_clear (const struct ground *ground, char dir[256])
{
    snprintf (dir, 256, "%s/state", ground->dir);
    nftw (dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (mkdir (dir, 0700) != 0)
        abort ();
}

/* In ranges of as many each, with a gap between them. */
static void indexes_add (Nui__Common__V1__Job *m, const struct plain_job *job)
{
    uint32_t ranges = job->ranges ? job->ranges : 1, each = job->array / ranges, at = 0;
    if (!job->array)
        return;
    Nui__Common__V1__IndexRange *range = calloc (ranges, sizeof *range);
    m->indexes = calloc (ranges, sizeof *m->indexes);
    if (!range || !m->indexes)
        abort ();
    for (uint32_t i = 0; i < ranges; i++, at += each + 1) {
        nui__common__v1__index_range__init (&range[i]);
        range[i].from = at;
        range[i].to = at + each - 1;
        m->indexes[m->n_indexes++] = &range[i];
    }
}

Nui__Common__V1__Envelope *plain_job (const struct ground *ground, const struct plain_job *job)
{
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component c[8], *components[8];
    Nui__Common__V1__Req r = NUI__COMMON__V1__REQ__INIT, *reqs[] = {&r};
    Nui__Common__V1__Envelope *e = NULL;
    struct err err = {0};
    uint8_t uuid[16] = {0}, body[128 * 1024];
    char name[8][8], *sites[] = {(char *)(uintptr_t)job->site};
    uint32_t count = job->components ? job->components : 1;
    memcpy (uuid, &job->number, sizeof job->number);
    uuid[15] = 2;
    m.grid = (char *)(uintptr_t) "test";
    m.submitter = (char *)(uintptr_t) "nui://test/user/alice";
    m.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    m.created_us = clock_now_us ();
    m.expires_us = m.created_us + 86400 * US_PER_S;
    m.account = (char *)(uintptr_t) "phys";
    m.cost_any = true;
    m.components = components;
    r.tasks = job->tasks ? job->tasks : 1;
    for (uint32_t i = 0; i < count && i < 8; i++) {
        nui__common__v1__component__init (&c[i]);
        snprintf (name[i], sizeof name[i], "c%u", i);
        c[i].name = job->components ? name[i] : (char *)(uintptr_t) "main";
        c[i].walltime_us = job->walltime_us ? job->walltime_us : 600 * US_PER_S;
        c[i].reqs = reqs;
        c[i].n_reqs = 1;
        c[i].sites = sites;
        c[i].n_sites = job->site != NULL;
        c[i].script = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "exit 0\n"};
        components[m.n_components++] = &c[i];
    }
    indexes_add (&m, job);
    if (envelope_sign (ground->alice, body, nui__common__v1__job__pack (&m, body), &e, &err) != 0)
        abort ();
    free (m.indexes ? m.indexes[0] : NULL);
    free (m.indexes);
    return e;
}
