/* disk: SQLite's files in memory. What was written is there at once, what was synced survives its
 * machine. One process, one thread: locks are counted, the index of a write-ahead log is heap. */
#include "sim.h"

#include <sqlite3.h>
#include <uthash.h>

enum { SHM_REGIONS = 64, LOCKS = SQLITE_SHM_NLOCK };

/* In chunks that go from file to file and from world to world: fresh memory is most of what a large
 * buffer costs. */
enum { CHUNK = 32768, CHUNKS_MAX = 4096 };

struct bytes {
    uint8_t **chunk;
    size_t size, chunks;
};

struct memfile {
    char path[192];
    struct bytes now, durable;
    size_t dirty_lo, dirty_hi; /* of now, not synced */
    struct machine *owner;     /* NULL: nobody's, never crashes */
    void *shm[SHM_REGIONS];
    int shm_size;
    uint32_t shm_shared[LOCKS], shm_users;
    bool shm_exclusive[LOCKS];
    uint32_t opened;
    UT_hash_handle hh;
};

struct memhandle {
    sqlite3_file base;
    struct memfile *file;
    bool temporary, shm;
};

struct template
{
    char kind[16];
    char tail[64]; /* of the path, behind the machine's folder */
    struct bytes data;
    struct template *next;
};

static struct memfile *files;
static struct template *templates;
static uint64_t temporary_number;

static union chunk {
    union chunk *next;
    uint8_t at[CHUNK];
} * spare;

static void reserve (struct bytes *b, size_t size)
{
    if (size > (size_t)CHUNK * CHUNKS_MAX)
        abort ();
    if (size && !b->chunk)
        b->chunk = calloc (CHUNKS_MAX, sizeof *b->chunk);
    for (; b->chunks * CHUNK < size; b->chunks++) {
        union chunk *chunk = spare;
        if (chunk)
            spare = chunk->next;
        else
            chunk = malloc (sizeof *chunk);
        if (!b->chunk || !chunk)
            abort ();
        b->chunk[b->chunks] = chunk->at;
    }
}

static void release (struct bytes *b)
{
    while (b->chunks) {
        union chunk *chunk = (union chunk *)(void *)b->chunk[--b->chunks];
        chunk->next = spare;
        spare = chunk;
    }
    free (b->chunk);
    *b = (struct bytes){0};
}

/* What lies at `at` in one piece; *len becomes no longer than that. */
static uint8_t *piece (const struct bytes *b, size_t at, size_t *len)
{
    size_t left = CHUNK - at % CHUNK;
    *len = *len < left ? *len : left;
    return b->chunk[at / CHUNK] + at % CHUNK;
}

static void put (struct bytes *b, size_t at, const uint8_t *from, size_t len)
{
    for (size_t n; len; at += n, from += n, len -= n) {
        n = len;
        uint8_t *to = piece (b, at, &n);
        memcpy (to, from, n);
    }
}

static void get (const struct bytes *b, size_t at, uint8_t *to, size_t len)
{
    for (size_t n; len; at += n, to += n, len -= n) {
        n = len;
        const uint8_t *from = piece (b, at, &n);
        memcpy (to, from, n);
    }
}

static void resize (struct bytes *b, size_t size)
{
    reserve (b, size);
    for (size_t n; b->size < size; b->size += n) {
        n = size - b->size;
        uint8_t *at = piece (b, b->size, &n);
        memset (at, 0, n);
    }
    b->size = size;
}

/* Both have what lies between. */
static void copy_range (struct bytes *to, const struct bytes *from, size_t lo, size_t hi)
{
    for (size_t n; lo < hi; lo += n) {
        n = hi - lo;
        const uint8_t *at = piece (from, lo, &n);
        put (to, lo, at, n);
    }
}

static void copy (struct bytes *to, const struct bytes *from)
{
    reserve (to, from->size);
    copy_range (to, from, 0, from->size);
    to->size = from->size;
}

static void shm_free (struct memfile *file)
{
    for (int i = 0; i < SHM_REGIONS; i++) {
        free (file->shm[i]);
        file->shm[i] = NULL;
    }
    memset (file->shm_shared, 0, sizeof file->shm_shared);
    memset (file->shm_exclusive, 0, sizeof file->shm_exclusive);
}

static void file_free (struct memfile *file)
{
    HASH_DEL (files, file);
    shm_free (file);
    release (&file->now);
    release (&file->durable);
    free (file);
}

static struct machine *owner_of (const char *path)
{
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        size_t len = strlen (sim.machine[i].dir);
        if (len && strncmp (path, sim.machine[i].dir, len) == 0 && path[len] == '/')
            return &sim.machine[i];
    }
    return NULL;
}

static struct memfile *file_find (const char *path)
{
    struct memfile *file;
    HASH_FIND_STR (files, path, file);
    return file;
}

static struct memfile *file_make (const char *path)
{
    struct memfile *file = calloc (1, sizeof *file);
    if (!file)
        abort ();
    snprintf (file->path, sizeof file->path, "%s", path);
    file->owner = owner_of (path);
    file->dirty_lo = SIZE_MAX;
    HASH_ADD_STR (files, path, file);
    return file;
}

static struct memfile *of (sqlite3_file *base)
{
    return ((struct memhandle *)base)->file;
}

static bool dead (const struct memfile *file)
{
    return file->owner && file->owner->dying;
}

/* ---- a file */

static int mem_close (sqlite3_file *base)
{
    struct memhandle *h = (struct memhandle *)base;
    if (--h->file->opened == 0 && h->temporary)
        file_free (h->file);
    return SQLITE_OK;
}

static int mem_read (sqlite3_file *base, void *out, int len, sqlite3_int64 at)
{
    const struct memfile *f = of (base);
    size_t have = (size_t)at < f->now.size ? f->now.size - (size_t)at : 0;
    size_t take = have < (size_t)len ? have : (size_t)len;
    get (&f->now, (size_t)at, out, take);
    if (take == (size_t)len)
        return SQLITE_OK;
    memset ((uint8_t *)out + take, 0, (size_t)len - take);
    return SQLITE_IOERR_SHORT_READ;
}

static void dirty (struct memfile *f, size_t lo, size_t hi)
{
    if (lo < f->dirty_lo)
        f->dirty_lo = lo;
    if (hi > f->dirty_hi)
        f->dirty_hi = hi;
}

static int mem_write (sqlite3_file *base, const void *data, int len, sqlite3_int64 at)
{
    struct memfile *f = of (base);
    size_t end = (size_t)at + (size_t)len;
    if (dead (f))
        return SQLITE_IOERR_WRITE;
    if (f->owner && f->owner->disk_full)
        return SQLITE_FULL;
    if (end > f->now.size) {
        resize (&f->now, (size_t)at > f->now.size ? (size_t)at : f->now.size);
        reserve (&f->now, end);
        f->now.size = end;
    }
    put (&f->now, (size_t)at, data, (size_t)len);
    dirty (f, (size_t)at, end);
    return SQLITE_OK;
}

static int mem_truncate (sqlite3_file *base, sqlite3_int64 size)
{
    struct memfile *f = of (base);
    if (dead (f))
        return SQLITE_IOERR_TRUNCATE;
    resize (&f->now, (size_t)size);
    return SQLITE_OK;
}

static int mem_sync (sqlite3_file *base, int flags)
{
    struct memfile *f = of (base);
    (void)flags;
    if (dead (f) || (f->owner && !machine_lives_through_step (f->owner, false)))
        return SQLITE_IOERR_FSYNC;
    size_t hi = f->dirty_hi < f->now.size ? f->dirty_hi : f->now.size;
    reserve (&f->durable, f->now.size);
    f->durable.size = f->now.size; /* what it grew by was written since */
    copy_range (&f->durable, &f->now, f->dirty_lo, hi);
    f->dirty_lo = SIZE_MAX;
    f->dirty_hi = 0;
    if (f->owner)
        machine_lives_through_step (f->owner, true); /* it does not get to hear of it */
    return SQLITE_OK;
}

static int mem_size (sqlite3_file *base, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)of (base)->now.size;
    return SQLITE_OK;
}

static int mem_lock (sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int mem_check_reserved (sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int mem_control (sqlite3_file *base, int op, void *arg)
{
    (void)base;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int mem_sector (sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int mem_characteristics (sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int mem_shm_map (sqlite3_file *base, int region, int size, int extend, void volatile **out)
{
    struct memhandle *h = (struct memhandle *)base;
    struct memfile *f = h->file;
    *out = NULL;
    if (region >= SHM_REGIONS)
        return SQLITE_NOMEM;
    if (!h->shm) {
        h->shm = true;
        f->shm_users++;
    }
    if (!f->shm[region] && extend)
        f->shm[region] = calloc (1, (size_t)size);
    *out = f->shm[region];
    return SQLITE_OK;
}

static int mem_shm_lock (sqlite3_file *base, int first, int count, int flags)
{
    struct memfile *f = of (base);
    for (int i = first; i < first + count; i++) {
        if (flags & SQLITE_SHM_UNLOCK)
            continue;
        if (f->shm_exclusive[i] || (flags & SQLITE_SHM_EXCLUSIVE && f->shm_shared[i]))
            return SQLITE_BUSY;
    }
    for (int i = first; i < first + count; i++) {
        if (flags & SQLITE_SHM_EXCLUSIVE)
            f->shm_exclusive[i] = flags & SQLITE_SHM_LOCK;
        else if (flags & SQLITE_SHM_LOCK)
            f->shm_shared[i]++;
        else if (f->shm_shared[i])
            f->shm_shared[i]--;
    }
    return SQLITE_OK;
}

static void mem_shm_barrier (sqlite3_file *base)
{
    (void)base;
}

static int mem_shm_unmap (sqlite3_file *base, int delete)
{
    struct memhandle *h = (struct memhandle *)base;
    (void)delete;
    if (h->shm && --h->file->shm_users == 0)
        shm_free (h->file);
    h->shm = false;
    return SQLITE_OK;
}

static const sqlite3_io_methods io = {
    .iVersion = 2,
    .xClose = mem_close,
    .xRead = mem_read,
    .xWrite = mem_write,
    .xTruncate = mem_truncate,
    .xSync = mem_sync,
    .xFileSize = mem_size,
    .xLock = mem_lock,
    .xUnlock = mem_lock,
    .xCheckReservedLock = mem_check_reserved,
    .xFileControl = mem_control,
    .xSectorSize = mem_sector,
    .xDeviceCharacteristics = mem_characteristics,
    .xShmMap = mem_shm_map,
    .xShmLock = mem_shm_lock,
    .xShmBarrier = mem_shm_barrier,
    .xShmUnmap = mem_shm_unmap,
};

/* ---- the file system */

static int fs_open (sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct memhandle *h = (struct memhandle *)base;
    char name[64];
    (void)vfs;
    memset (h, 0, sizeof *h);
    if (!path) {
        snprintf (name, sizeof name, "temporary-%" PRIu64, ++temporary_number);
        path = name;
        h->temporary = true;
    }
    h->file = file_find (path);
    if (!h->file) /* store.c makes the file of a database itself */
        h->file = file_make (path);
    h->file->opened++;
    h->base.pMethods = &io;
    if (out)
        *out = flags;
    return SQLITE_OK;
}

static int fs_delete (sqlite3_vfs *vfs, const char *path, int sync)
{
    struct memfile *file = file_find (path);
    (void)vfs;
    (void)sync;
    if (file && dead (file))
        return SQLITE_IOERR_DELETE;
    if (file && file->opened == 0)
        file_free (file);
    return SQLITE_OK;
}

static int fs_access (sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    (void)vfs;
    (void)flags;
    *out = file_find (path) != NULL;
    return SQLITE_OK;
}

static int fs_full_path (sqlite3_vfs *vfs, const char *path, int cap, char *out)
{
    (void)vfs;
    snprintf (out, (size_t)cap, "%s", path);
    return SQLITE_OK;
}

static int fs_random (sqlite3_vfs *vfs, int len, char *out)
{
    (void)vfs;
    for (int i = 0; i < len; i++)
        out[i] = (char)sim_random ();
    return len;
}

static int fs_sleep (sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int fs_time (sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    *out = 2440587.5 + (double)(sim.epoch + sim.now) / 86400e6;
    return SQLITE_OK;
}

static sqlite3_vfs vfs = {
    .iVersion = 1,
    .szOsFile = sizeof (struct memhandle),
    .mxPathname = 190,
    .zName = "sim",
    .xOpen = fs_open,
    .xDelete = fs_delete,
    .xAccess = fs_access,
    .xFullPathname = fs_full_path,
    .xRandomness = fs_random,
    .xSleep = fs_sleep,
    .xCurrentTime = fs_time,
};

void disk_open (void)
{
    /* One thread; nobody asks what it uses. */
    if (sqlite3_config (SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
        sqlite3_config (SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK ||
        sqlite3_initialize () != SQLITE_OK || sqlite3_vfs_register (&vfs, 1) != SQLITE_OK)
        abort ();
}

/* ---- machines */

/* One becomes as the other is: files of one length differ where they are dirty. */
static void same_again (struct bytes *to, const struct bytes *from, const struct memfile *file)
{
    if (to->size != from->size)
        copy (to, from);
    else
        copy_range (to, from, file->dirty_lo,
                    file->dirty_hi < from->size ? file->dirty_hi : from->size);
}

void disk_crash (struct machine *machine)
{
    struct memfile *file, *next;
    HASH_ITER (hh, files, file, next) {
        if (file->owner != machine)
            continue;
        if (sim_chance (50))
            same_again (&file->now, &file->durable, file);
        else
            same_again (&file->durable, &file->now, file);
        file->dirty_lo = SIZE_MAX;
        file->dirty_hi = 0;
        shm_free (file);
    }
}

static void template_keep (struct machine *machine, const char *kind)
{
    size_t len = strlen (machine->dir);
    for (struct memfile *file = files; file; file = file->hh.next) {
        struct template *t = file->owner == machine ? calloc (1, sizeof *t) : NULL;
        if (!t)
            continue;
        snprintf (t->kind, sizeof t->kind, "%s", kind);
        snprintf (t->tail, sizeof t->tail, "%s", file->path + len);
        copy (&t->data, &file->now);
        t->next = templates;
        templates = t;
    }
}

void disk_format (struct machine *machine, const char *kind,
                  void (*format) (struct machine *machine))
{
    bool known = false;
    char path[192];
    for (struct template *t = templates; t; t = t->next) {
        if (strcmp (t->kind, kind) != 0)
            continue;
        known = true;
        snprintf (path, sizeof path, "%s%s", machine->dir, t->tail);
        struct memfile *file = file_make (path);
        copy (&file->now, &t->data);
        copy (&file->durable, &t->data);
    }
    if (known)
        return;
    format (machine);
    template_keep (machine, kind);
}

void disk_clear (void)
{
    struct memfile *file, *next;
    HASH_ITER (hh, files, file, next)
        file_free (file);
}

void disk_close (void)
{
    disk_clear ();
    for (struct template *t = templates, *next; t; t = next) {
        next = t->next;
        release (&t->data);
        free (t);
    }
    templates = NULL;
    for (union chunk *chunk = spare, *after; chunk; chunk = after) {
        after = chunk->next;
        free (chunk);
    }
    spare = NULL;
}
