/* jobarray: parses the value of --array. submit of a site and of the grid call it before
 * anything is signed. Ranges are counted against JOBARRAY_MAX index by index, so that a huge one
 * ends at the bound. */
#include "proto/cli/jobarray.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/cli/stageoption.h"

enum { INDEX_MAX = 1000000 };

static int add (struct jobarray *a, uint32_t index, struct err *err)
{
    if (a->count == JOBARRAY_MAX)
        return err_set (err, ERR_LIMIT, "--array: more than %d jobs", JOBARRAY_MAX);
    for (uint32_t i = 0; i < a->count; i++)
        if (a->index[i] == index)
            return err_set (err, ERR_INVALID, "--array: index %u is given twice", index);
    a->min = a->count == 0 || index < a->min ? index : a->min;
    a->max = a->count == 0 || index > a->max ? index : a->max;
    a->index[a->count++] = index;
    return 0;
}

static int range_add (struct jobarray *a, char *text, struct err *err)
{
    uint64_t from, to, step = 1;
    char *colon = strchr (text, ':'), *dash;
    if (colon)
        *colon++ = '\0';
    dash = strchr (text, '-');
    if (dash)
        *dash++ = '\0';
    int rc = uint_parse (text, "--array", 0, INDEX_MAX, &from, err);
    to = from;
    if (rc == 0 && dash)
        rc = uint_parse (dash, "--array", 0, INDEX_MAX, &to, err);
    if (rc == 0 && colon)
        rc = uint_parse (colon, "--array's step", 1, INDEX_MAX, &step, err);
    if (rc == 0 && (to < from || (colon && !dash)))
        rc = err_set (err, ERR_INVALID, "--array: wanted indexes as in 1-10 or 0-30:5,99");
    for (uint64_t i = from; rc == 0 && i <= to; i += step)
        rc = add (a, (uint32_t)i, err);
    return rc;
}

int jobarray_parse (const char *text, struct arena *arena, struct jobarray *out, struct err *err)
{
    char *copy, *percent, *rest = NULL;
    uint64_t limit = 0;
    int rc = 0;
    *out = (struct jobarray){0};
    if (!text)
        return 0;
    copy = arena_strdup (arena, text);
    out->index = arena_array (arena, JOBARRAY_MAX, sizeof *out->index);
    percent = strchr (copy, '%');
    if (percent) {
        *percent++ = '\0';
        rc = uint_parse (percent, "--array's limit", 1, JOBARRAY_MAX, &limit, err);
    }
    for (char *one = strtok_r (copy, ",", &rest); one && rc == 0; one = strtok_r (NULL, ",", &rest))
        rc = range_add (out, one, err);
    if (rc == 0 && out->count == 0)
        rc = err_set (err, ERR_INVALID, "--array names no index");
    out->limit = (uint32_t)limit;
    uuid_make (&out->id);
    return rc;
}

Nui__Common__V1__Job *jobarray_element (const struct jobarray *a, uint32_t i, struct arena *arena,
                                        Nui__Common__V1__Job *whole)
{
    if (a->count == 0)
        return whole;
    struct uuid *uuid = arena_new (arena, struct uuid), *id = arena_new (arena, struct uuid);
    Nui__Common__V1__Job *job = arena_memdup (arena, whole, sizeof *whole);
    uuid_make (uuid);
    *id = a->id;
    job->uuid.data = uuid->b;
    job->uuid.len = sizeof uuid->b;
    job->array_id.data = id->b;
    job->array_id.len = sizeof id->b;
    job->array_index = a->index[i];
    job->array_limit = a->limit;
    job->array_count = a->count;
    job->array_min = a->min;
    job->array_max = a->max;
    job->components = arena_array (arena, job->n_components, sizeof *job->components);
    for (size_t k = 0; k < job->n_components; k++) {
        job->components[k] =
            arena_memdup (arena, whole->components[k], sizeof *whole->components[k]);
        stageoption_index (job->components[k], a->index[i], arena);
    }
    return job;
}

static int index_compare (const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void jobarray_whole (struct jobarray *a, struct arena *arena, Nui__Common__V1__Job *job)
{
    qsort (a->index, a->count, sizeof *a->index, index_compare);
    job->indexes = arena_array (arena, a->count + 1u, sizeof *job->indexes);
    for (uint32_t i = 0, n; i < a->count; i += n) {
        const uint32_t step = i + 1 < a->count ? a->index[i + 1] - a->index[i] : 1;
        for (n = 1; i + n < a->count && a->index[i + n] - a->index[i + n - 1] == step;)
            n++;
        if (n == 2 && step > 1)
            n = 1; /* the second may begin a range of its own */
        Nui__Common__V1__IndexRange *range = arena_new (arena, Nui__Common__V1__IndexRange);
        nui__common__v1__index_range__init (range);
        range->from = a->index[i];
        range->to = a->index[i + n - 1];
        range->step = n > 1 ? step : 1;
        job->indexes[job->n_indexes++] = range;
    }
    job->array_limit = a->limit;
}
