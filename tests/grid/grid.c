/* grid: the programs of a grid on simulated machines, and worlds that are made of them. */
#include "grid_i.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "local/core/policy.h"
#include "local/store/local_store.h"
#include "meta/conf/config.h"
#include "meta/svc/metad.h"
#include "proto/conf/conf.h"
#include "proto/rpc/envelope.h"
#include "tests/interop/testca.h"

static const duration_us give_up = 6 * 3600 * SEC;

static const char *const site_names[] = {"alpha", "beta", "gamma", "delta"};
static const char *const meta_names[] = {"meta1", "meta2", "meta3", "meta4", "meta5"};

struct grid_world w;

static char *folder; /* of the keys, and all else below it */
static char own[96]; /* of this process's machines */
static pid_t opened_by;
static struct testca *ca;
static struct tlsid *identity[16];
static char identity_name[16][32];
static uint32_t identity_count;

/* ---- programs */

struct local {
    struct cred_names names;
    struct conf *conf;
    struct settings *settings;
    struct svc *svc;
};

static void local_stop (struct machine *machine, void *self)
{
    struct local *local = self;
    (void)machine;
    svc_destroy (local->svc);
    settings_destroy (local->settings);
    conf_destroy (local->conf);
    cred_names_free (&local->names);
    free (local);
}

static void *local_start (struct machine *machine, struct err *err)
{
    struct local *local = calloc (1, sizeof *local);
    char text[4096];
    uint32_t at = (uint32_t)strcspn ("abgd", (char[]){machine->name[0], 0});
    int len =
        snprintf (text, sizeof text,
                  "SITENAME %s\nBANK bank:1\nGRIDMAP %s/gridmap\nJOBDIR %s/jobs\nSTATDIR %s/stats\n"
                  "PORTRANGE 20000-20999\nRMCFG[base] TYPE=EMBEDDED\nCGROUPS FALSE\nSTARTGRACE 30\n"
                  "BANKPATIENCE 4\nADVERTISE %s:1\nNODECFG[%s[01-%02u]] PROCS=%d MEM=4G\n%s\nMETA",
                  machine->name, folder, machine->dir, machine->dir, machine->name, machine->name,
                  w.shape.nodes[at], GRID_NODE_PROCS, w.shape.site_lines ? w.shape.site_lines : "");
    if (!local)
        abort ();
    for (uint32_t m = 0; m < w.shape.metas; m++)
        len += snprintf (text + len, sizeof text - (size_t)len, " %s:1", meta_names[m]);
    cred_names_init (&local->names);
    for (uint32_t m = 0; w.shape.group && m < w.shape.metas; m++)
        len += snprintf (text + len, sizeof text - (size_t)len, "%s %s", m ? "" : "\nMETAGROUP",
                         meta_names[m]);
    local->conf = conf_parse (text, (size_t)len, "simulated", err);
    if (!local->conf || settings_read (local->conf, &local->names, -1, &local->settings, err))
        sim_fail ("configuration: %s", err->text);
    if (svc_create ((struct daemon *)machine, &local->names, local->settings, &local->svc, err) ==
        0)
        return local;
    local->svc = NULL;
    local_stop (machine, local);
    return NULL;
}

struct meta {
    struct conf *conf;
    struct metad_config *config;
    struct metad *metad;
};

static void meta_stop (struct machine *machine, void *self)
{
    struct meta *meta = self;
    (void)machine;
    metad_destroy (meta->metad);
    metad_config_destroy (meta->config);
    conf_destroy (meta->conf);
    free (meta);
}

static void *meta_start (struct machine *machine, struct err *err)
{
    struct meta *meta = calloc (1, sizeof *meta);
    char text[2048];
    int len =
        snprintf (text, sizeof text,
                  "BANK bank:1\nLEASETIME 12\nPREPARETIMEOUT 8\nBARRIERTIMEOUT 20\nCOALLOCLEAD 3\n"
                  "MOVEINTERVAL 30\nMOVEGAIN 5\n%s\n",
                  w.shape.meta_lines ? w.shape.meta_lines : "");
    if (!meta)
        abort ();
    for (uint32_t s = 0; s < w.shape.sites; s++)
        len += snprintf (text + len, sizeof text - (size_t)len, "SITECFG[%s] SERVER=%s:1\n",
                         site_names[s], site_names[s]);
    for (uint32_t m = 0; w.shape.group && m < w.shape.metas; m++)
        len += snprintf (text + len, sizeof text - (size_t)len, "%sMETACFG[%s] SERVER=%s:1\n",
                         m ? "" : "TAKEOVERTIME 6\n", meta_names[m], meta_names[m]);
    meta->conf = conf_parse (text, (size_t)len, "simulated", err);
    meta->config = meta->conf ? metad_config_read (meta->conf, err) : NULL;
    if (!meta->config)
        sim_fail ("configuration: %s", err->text);
    struct metad_env env = {
        .base = machine->base, .id = machine->id, .grid = "test", .state_dir = machine->dir};
    meta->metad = metad_create (&env, meta->config, err);
    if (meta->metad && metad_serve (meta->metad, (struct rpcserver *)machine, err) == 0)
        return meta;
    meta_stop (machine, meta);
    return NULL;
}

static const struct program local_program = {local_start, local_stop};
static const struct program meta_program = {meta_start, meta_stop};

struct svc *svc_of (const struct machine *machine)
{
    return machine->kind == PRINCIPAL_SITE && machine->self ? ((struct local *)machine->self)->svc
                                                            : NULL;
}

/* Rendezvous ports of the real machine are nobody's business here. */
void ports_mark (struct svc *svc, uint32_t port, bool used)
{
    if (port)
        svc->port_used[port / 8] = (uint8_t)((svc->port_used[port / 8] & ~(1u << (port % 8))) |
                                             (unsigned)used << (port % 8));
}

uint32_t ports_choose (struct svc *svc)
{
    for (uint32_t port = svc->settings->port_lo; port <= svc->settings->port_hi; port++)
        if (!(svc->port_used[port / 8] >> (port % 8) & 1))
            return port;
    return 0;
}

/* ---- worlds */

/* When the worlds begin, 2026-11-02 00:00 UTC, a Monday: whatever the day and hour of a run, a seed is the same
 * world. Certificates are issued around it, since a clock in a world may step back by days. */
#define EPOCH ((time_us)1793577600 * SEC)
enum { DAY_S = 86400 };

static struct tlsid *identity_of (enum principal_kind kind, const char *name)
{
    for (uint32_t i = 0; i < identity_count; i++)
        if (strcmp (identity_name[i], name) == 0)
            return identity[i];
    char uri[128];
    snprintf (uri, sizeof uri, "nui://test/%s/%s", principal_kind_name (kind), name);
    time_t begin = (time_t)(EPOCH / SEC) - time (NULL);
    testca_issue (ca, &(struct testca_cert){.name = name,
                                            .uri = uri,
                                            .not_before = begin - 100 * DAY_S,
                                            .not_after = begin + 3000 * DAY_S});
    snprintf (identity_name[identity_count], sizeof identity_name[0], "%s", name);
    return identity[identity_count++] = testca_tlsid (folder, "ca", name, false);
}

static void disks_format (void);

void grid_open (void)
{
    char path[256];
    if (!getenv ("TMPDIR") && access ("/dev/shm", W_OK) == 0)
        setenv ("TMPDIR", "/dev/shm",
                1); /* statistics are files, and nobody's disk is to wait for them */
    folder = testca_dir ();
    opened_by = getpid ();
    snprintf (own, sizeof own, "%s", folder);
    ca = testca_create (folder, "ca");
    snprintf (path, sizeof path, "%s/gridmap", folder);
    FILE *f = fopen (path, "w");
    if (!f || fputs ("\"nui://test/user/alice\" alice\n", f) < 0 || fclose (f))
        abort ();
    identity_of (PRINCIPAL_USER, "alice");
    identity_of (PRINCIPAL_BANK, "bank");
    for (size_t i = 0; i < sizeof site_names / sizeof *site_names; i++)
        identity_of (PRINCIPAL_SITE, site_names[i]);
    for (size_t i = 0; i < sizeof meta_names / sizeof *meta_names; i++)
        identity_of (PRINCIPAL_META, meta_names[i]);
    disk_open ();
    disks_format ();
}

void grid_worker (uint32_t number)
{
    snprintf (own, sizeof own, "%s/worker%u", folder, number);
    if (mkdir (own, 0700) && errno != EEXIST)
        sim_fail ("%s: %s", own, strerror (errno));
}

static int remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

void grid_close (void)
{
    disk_close ();
    signature_forget ();
    for (uint32_t i = 0; i < identity_count; i++)
        tlsid_destroy (identity[i]);
    testca_destroy (ca);
    if (getpid () == opened_by)
        nftw (folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free (folder);
}

static void local_format (struct machine *machine)
{
    struct local_store *store;
    struct err err = {0};
    char path[192];
    snprintf (path, sizeof path, "%s/local.db", machine->dir);
    if (local_store_open (path, &store, &err))
        sim_fail ("%s", err.text);
    local_store_close (store);
}

static void meta_format (struct machine *machine)
{
    struct err err = {0};
    char path[192];
    snprintf (path, sizeof path, "%s/meta.sqlite", machine->dir);
    struct metastore *store = metastore_open (path, &err);
    if (!store)
        sim_fail ("%s", err.text);
    metastore_close (store);
}

static void machine_make (const char *name, enum principal_kind kind, const struct program *program)
{
    struct machine *machine = machine_add (name, kind, program, identity_of (kind, name));
    snprintf (machine->dir, sizeof machine->dir, "%s/%s", own, name);
    if (mkdir (machine->dir, 0700) && errno != EEXIST)
        sim_fail ("%s: %s", machine->dir, strerror (errno));
    if (kind == PRINCIPAL_SITE)
        disk_format (machine, "local", local_format);
    else if (kind == PRINCIPAL_META)
        disk_format (machine, "meta", meta_format);
}

/* Before the first world, so that every world finds the same. */
static void disks_format (void)
{
    sim_begin (0, 0);
    machine_make ("alpha", PRINCIPAL_SITE, &local_program);
    machine_make ("meta1", PRINCIPAL_META, &meta_program);
    sim_end ();
    disk_clear ();
}

void grid_begin (uint64_t seed, const struct grid_shape *shape)
{
    sim_begin (seed, EPOCH);
    memset (&w, 0, sizeof w);
    w.shape = *shape;
    runner_begin ();
    bank_begin (shape->balance);
    grid_strike = NULL;
    machine_make ("alice", PRINCIPAL_USER, NULL);
    w.user = machine_find ("alice");
    machine_make ("bank", PRINCIPAL_BANK, &bank_program);
    for (uint32_t s = 0; s < shape->sites; s++)
        machine_make (site_names[s], PRINCIPAL_SITE, &local_program);
    for (uint32_t m = 0; m < shape->metas; m++)
        machine_make (meta_names[m], PRINCIPAL_META, &meta_program);
    sim.on_reply = invariants_reply;
    sim.on_step = invariants_step;
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (sim.machine[i].program)
            machine_start (&sim.machine[i]);
}

void grid_heal (void)
{
    sim.loss_percent = sim.slow_percent = 0;
    memset (sim.cut, 0, sizeof sim.cut);
    sim.silenced = NULL;
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        struct machine *machine = &sim.machine[i];
        machine->disk_full = machine->held_down = false;
        machine->crash_after = 0;
        if (machine->program && !machine->self && !machine->restart.place)
            todo_set (&machine->restart, sim.now + SEC);
    }
}

void grid_clock_step (struct machine *machine, duration_us by)
{
    TRACE ("%-6s clock steps by %.1f s", machine->name, (double)by / 1e6);
    machine->wall_offset += by;
    runner_clock_stepped (machine);
    w.clocks_stepped = true;
}

bool grid_until (bool (*happened) (void *arg), void *arg, duration_us limit)
{
    time_us until = sim.now + limit;
    while (!happened (arg)) {
        if (sim.now >= until)
            return false;
        sim_run (sim.now + 20 * MS);
    }
    return true;
}

static bool all_over (void *arg)
{
    (void)arg;
    for (uint32_t j = 0; j < w.job_count; j++)
        if (!w.job[j].over)
            return false;
    return true;
}

static bool settled (void *arg)
{
    (void)arg;
    if (bank_holds_open ())
        return false;
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        struct svc *svc = svc_of (&sim.machine[i]);
        if (sim.machine[i].kind != PRINCIPAL_SITE)
            continue;
        if (!svc || svc->parts || svc->jobs || runner_live (&sim.machine[i]))
            return false;
    }
    return true;
}

/* Whom their users did not ask. */
static void members_tell (void)
{
    for (uint32_t i = 0; i < sim.machine_count && w.shape.group; i++) {
        if (sim.machine[i].kind != PRINCIPAL_META)
            continue;
        for (uint32_t j = 0; j < w.job_count; j++)
            if (w.job[j].id[0])
                grid_ask_at (j, sim.machine[i].name);
        if (!grid_until (all_over, NULL, 600 * SEC))
            for (uint32_t j = 0; j < w.job_count; j++)
                CHECK (w.job[j].over, "%s does not know that job %u (%s) has ended: %d %s",
                       sim.machine[i].name, j, w.job[j].id, (int)w.job[j].state, w.job[j].reason);
    }
}

void grid_finish (void)
{
    if (!grid_until (all_over, NULL, give_up))
        for (uint32_t j = 0; j < w.job_count; j++)
            CHECK (w.job[j].over, "job %u (%s of %s) has not ended after hours: %d %s", j,
                   w.job[j].id, w.job[j].meta, (int)w.job[j].state, w.job[j].reason);
    if (!grid_until (settled, NULL, 600 * SEC)) {
        for (uint32_t i = 0; i < sim.machine_count; i++) {
            struct svc *svc = svc_of (&sim.machine[i]);
            for (const struct site_job *job = svc ? svc->jobs : NULL; job; job = job->hh.next)
                sim_fail ("every job has ended, and %s.%" PRIu64 " (%s) is in state %d: %s",
                          svc->site, job->rec.number, job->rec.grid_job_id, (int)job->rec.state,
                          job->rec.reason_text ? job->rec.reason_text : "");
        }
        sim_fail ("(iii) every job has ended, and %u holds are open at the bank: %s",
                  bank_holds_open (), bank_hold_any ());
    }
    members_tell ();
    invariants_end ();
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        coverage_add ("total crashes", sim.machine[i].crashes);
        coverage_add ("total durable steps", sim.machine[i].syncs);
    }
    coverage_add ("total events", sim.events);
    coverage_add ("total messages", sim.messages);
    sim.on_step = NULL;
    sim_end ();
    runner_end ();
    disk_clear ();
    for (uint32_t j = 0; j < w.job_count; j++)
        envelope_free (w.job[j].envelope), envelope_free (w.job[j].terms);
}
