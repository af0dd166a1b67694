#include "tests/grid/coverage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROWS = 4096, NAME_MAX_ = 88 }; /* ROWS: a power of two */

struct row {
    uint64_t times;
    char name[NAME_MAX_];
};

static struct row *table; /* ROWS of each process */
static uint32_t tables, mine;

void coverage_open (uint32_t processes)
{
    tables = processes;
    table = mmap (NULL, (size_t)processes * ROWS * sizeof *table, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        abort ();
}

void coverage_process (uint32_t process)
{
    mine = process;
}

void coverage_close (void)
{
    if (table)
        munmap (table, (size_t)tables * ROWS * sizeof *table);
    table = NULL;
}

/* The name's row, which is empty where it was never counted. */
static struct row *row_of (struct row *rows, const char *name)
{
    uint32_t at = 2166136261u;
    for (const char *c = name; *c; c++)
        at = (at ^ (uint8_t)*c) * 16777619u;
    for (uint32_t tried = 0; tried < ROWS; tried++, at++) {
        struct row *row = &rows[at % ROWS];
        if (!row->name[0] || strcmp (row->name, name) == 0)
            return row;
    }
    fprintf (stderr, "more than %d things are counted\n", ROWS);
    abort ();
}

static void add (struct row *rows, const char *name, uint64_t times)
{
    struct row *row = row_of (rows, name);
    if (!row->name[0])
        snprintf (row->name, sizeof row->name, "%s", name);
    row->times += times;
}

void coverage_add (const char *name, uint64_t times)
{
    if (table && times)
        add (table + (size_t)mine * ROWS, name, times);
}

void coverage_count (const char *fmt, ...)
{
    char name[NAME_MAX_];
    va_list ap;
    if (!table)
        return;
    va_start (ap, fmt);
    vsnprintf (name, sizeof name, fmt, ap);
    va_end (ap);
    add (table + (size_t)mine * ROWS, name, 1);
}

bool coverage_wants_text (const char *area, const char *event)
{
    return table && strcmp (area, "coalloc") == 0 && strcmp (event, "phase") == 0;
}

void coverage_log (const char *area, const char *event, const char *text)
{
    char step[24], from[24], to[24];
    const char *at = text ? strstr (text, " event=") : NULL;
    if (at && sscanf (at, " event=%23s from=%23s to=%23s", step, from, to) == 3)
        coverage_count ("step %s %s to %s", step, from, to);
    else
        coverage_count ("log %s.%s", area, event);
}

/* All processes' counts in the first table; the others are empty afterwards. */
static void gather (void)
{
    for (size_t i = ROWS; i < (size_t)tables * ROWS; i++)
        if (table[i].times) {
            add (table, table[i].name, table[i].times);
            table[i] = (struct row){0};
        }
}

uint64_t coverage_of (const char *name)
{
    gather ();
    return row_of (table, name)->times;
}

static int by_name (const void *a, const void *b)
{
    return strcmp (((const struct row *)a)->name, ((const struct row *)b)->name);
}

void coverage_print (uint64_t worlds)
{
    struct row *sorted = malloc (ROWS * sizeof *sorted);
    if (!sorted)
        abort ();
    gather ();
    memcpy (sorted, table, ROWS * sizeof *sorted);
    qsort (sorted, ROWS, sizeof *sorted, by_name);
    printf ("%12s %12s\n", "times", "per 1,000");
    for (uint32_t i = 0; i < ROWS; i++)
        if (sorted[i].times)
            printf ("%12" PRIu64 " %12.1f  %s\n", sorted[i].times,
                    1000.0 * (double)sorted[i].times / (double)worlds, sorted[i].name);
    free (sorted);
}

bool coverage_reaches (const char *path)
{
    char line[256];
    bool all = true;
    uint32_t names = 0;
    FILE *file = fopen (path, "r");
    if (!file) {
        fprintf (stderr, "%s cannot be read\n", path);
        return false;
    }
    gather ();
    while (fgets (line, sizeof line, file)) {
        line[strcspn (line, "\n")] = '\0';
        if (!line[0] || line[0] == '#')
            continue;
        names++;
        if (row_of (table, line)->times)
            continue;
        fprintf (stderr, "never reached: %s\n", line);
        all = false;
    }
    fclose (file);
    if (all)
        printf ("all %u rows of %s were reached\n", names, path);
    return all && names;
}
