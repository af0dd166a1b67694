/* An array that was signed as one: its indexes, and the job of each. Who calls: nui-meta when it takes an array and for each of
 * its jobs, sites and the bank for what they are given, and the client for ids. A uuid is made here and nowhere else, so that
 * all of them mean the same job. */
#include "proto/job/element.h"

#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"
#include "proto/job/jobcheck.h"
#include "proto/job/stagespec.h"
#include "proto/rpc/pbcopy.h"

#define ELEMENT_DOMAIN "nui-array-v1"
enum { UUID_BYTES = 16 };

/* ---- the indexes */

static uint32_t range_step (const IndexRange *r)
{
    return r->step ? r->step : 1;
}

static uint32_t range_count (const IndexRange *r)
{
    return (r->to - r->from) / range_step (r) + 1;
}

static uint32_t range_last (const IndexRange *r)
{
    return r->from + (range_count (r) - 1) * range_step (r);
}

/* Of a co-reservation: as an array it is a standing one. */
static int element_moments_check (const Nui__Common__V1__Job *job, uint64_t count, struct err *err)
{
    const Nui__Common__V1__Reserve *r = job->reserve;
    if (r->n_starts_us != count || job->n_indexes > 1 ||
        (count && range_step (job->indexes[0]) != 1))
        return err_set (err, ERR_INVALID,
                        "%zu moments of a standing co-reservation of %llu: wanted one for each, "
                        "their indexes one after the other",
                        r->n_starts_us, (unsigned long long)count);
    for (size_t i = 0; i < r->n_starts_us; i++)
        if (r->starts_us[i] <= (i ? r->starts_us[i - 1] : 0))
            return err_set (err, ERR_INVALID,
                            "the moments of a standing co-reservation ascend, each once");
    return 0;
}

int element_check (const Nui__Common__V1__Job *job, struct err *err)
{
    uint64_t count = 0;
    if (job->n_indexes > ELEMENT_RANGES_MAX)
        return err_set (err, ERR_LIMIT, "an array of %zu ranges, allowed are %d", job->n_indexes,
                        ELEMENT_RANGES_MAX);
    for (size_t i = 0; i < job->n_indexes; i++) {
        const IndexRange *r = job->indexes[i];
        if (r->to < r->from || r->to > ELEMENT_INDEX_MAX || r->step > ELEMENT_INDEX_MAX ||
            (i && r->from <= range_last (job->indexes[i - 1])))
            return err_set (err, ERR_INVALID,
                            "an array's indexes ascend, each once, from 0 to %d: not %u-%u after "
                            "%u",
                            ELEMENT_INDEX_MAX, r->from, r->to,
                            i ? range_last (job->indexes[i - 1]) : 0);
        count += range_count (r);
    }
    if (count > ELEMENTS_MAX)
        return err_set (err, ERR_LIMIT, "an array of %llu jobs, allowed are %d",
                        (unsigned long long)count, ELEMENTS_MAX);
    if (count > 0 && job->n_components > ELEMENTS_MAX / count)
        return err_set (err, ERR_LIMIT,
                        "an array of %llu jobs of %zu components each, allowed are %d components "
                        "in all",
                        (unsigned long long)count, job->n_components, ELEMENTS_MAX);
    if (count && job->array_id.len)
        return err_set (err, ERR_INVALID, "one of an array cannot be an array");
    return job->reserve ? element_moments_check (job, count, err) : 0;
}

uint32_t element_count (const Nui__Common__V1__Job *job)
{
    uint32_t count = 0;
    for (size_t i = 0; i < job->n_indexes; i++)
        count += range_count (job->indexes[i]);
    return count;
}

uint32_t element_index (const Nui__Common__V1__Job *job, uint32_t place)
{
    size_t i = 0;
    while (place >= range_count (job->indexes[i]))
        place -= range_count (job->indexes[i++]);
    return job->indexes[i]->from + place * range_step (job->indexes[i]);
}

void element_indexes (const Nui__Common__V1__Job *job, uint32_t *out)
{
    for (size_t i = 0; i < job->n_indexes; i++)
        for (uint32_t k = 0; k < range_count (job->indexes[i]); k++)
            *out++ = job->indexes[i]->from + k * range_step (job->indexes[i]);
}

/* They ascend: the last that begins at it or before. */
static bool element_is_signed (const Nui__Common__V1__Job *job, uint32_t index)
{
    size_t low = 0, high = job->n_indexes;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->indexes[middle]->from <= index)
            low = middle;
        else
            high = middle;
    }
    const IndexRange *r = job->indexes[low];
    return index >= r->from && index <= r->to && (index - r->from) % range_step (r) == 0;
}

/* ---- the job of one */

static void transfers_index (Nui__Common__V1__Transfer **list, size_t count, uint32_t index)
{
    for (size_t i = 0; i < count; i++) {
        char *url = stage_index_put (list[i]->url, index);
        char *path = stage_index_put (list[i]->path, index);
        if (list[i]->url != protobuf_c_empty_string)
            free (list[i]->url);
        if (list[i]->path != protobuf_c_empty_string)
            free (list[i]->path);
        list[i]->url = url;
        list[i]->path = path;
    }
}

/* Of the signed uuid and the index; the signed one becomes the array's. */
static void element_name (Nui__Common__V1__Job *job, uint32_t index)
{
    const uint8_t bytes[4] = {(uint8_t)(index >> 24), (uint8_t)(index >> 16), (uint8_t)(index >> 8),
                              (uint8_t)index};
    uint8_t hash[SHA256_BYTES];
    uint8_t *uuid = malloc (UUID_BYTES);
    if (!uuid)
        abort ();
    EVP_MD_CTX *md = sha256_begin ();
    sha256_add (md, ELEMENT_DOMAIN, sizeof ELEMENT_DOMAIN);
    sha256_add (md, job->uuid.data, job->uuid.len);
    sha256_add (md, bytes, sizeof bytes);
    sha256_end (md, hash);
    memcpy (uuid, hash, UUID_BYTES);
    job->array_id = job->uuid;
    job->uuid = (ProtobufCBinaryData){UUID_BYTES, uuid};
}

int element_ready (Nui__Common__V1__Job *array, struct err *err)
{
    if (array->n_indexes == 0)
        return err_set (err, ERR_INVALID, "the job is no array");
    int rc = element_check (array, err);
    if (rc < 0)
        return rc;
    if (array->uuid.len != UUID_BYTES)
        return err_set (err, ERR_INVALID, "the signed job has no uuid of 16 bytes");
    array->array_count = element_count (array);
    array->array_min = array->indexes[0]->from;
    array->array_max = range_last (array->indexes[array->n_indexes - 1]);
    return 0;
}

/* Of an array that is ready. */
static int element_make (Nui__Common__V1__Job *job, uint32_t element, struct err *err)
{
    const uint32_t index = element - 1;
    if (element == 0)
        return err_set (err, ERR_INVALID, "the job is an array of %u, and none of them is meant",
                        job->array_count);
    if (!element_is_signed (job, index))
        return err_set (err, ERR_DENIED, "the user signed no index %u of this array", index);
    job->array_index = index;
    element_name (job, index);
    if (job->reserve) {
        time_us start = job->reserve->starts_us[index - job->array_min];
        if (job->not_after_us)
            job->not_after_us = start + (job->not_after_us - job->not_before_us);
        job->not_before_us = start;
    }
    for (size_t i = 0; i < job->n_components; i++) {
        transfers_index (job->components[i]->stage_in, job->components[i]->n_stage_in, index);
        transfers_index (job->components[i]->stage_out, job->components[i]->n_stage_out, index);
    }
    return 0;
}

int element_apply (Nui__Common__V1__Job *job, uint32_t element, struct err *err)
{
    if (job->n_indexes == 0)
        return element == 0
                   ? 0
                   : err_set (err, ERR_INVALID,
                              "job %u of an array is meant, and the job is no array", element - 1);
    int rc = element_ready (job, err);
    return rc < 0 ? rc : element_make (job, element, err);
}

Nui__Common__V1__Job *element_unpack (const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    Nui__Common__V1__Job *job = jobcheck_unpack (&envelope->body, err);
    if (job && element_apply (job, envelope->element, err) < 0) {
        nui__common__v1__job__free_unpacked (job, NULL);
        job = NULL;
    }
    return job;
}

/* ---- the same without a copy of what all of them share */

static void *view_alloc (size_t count, size_t size)
{
    void *out = calloc (count ? count : 1, size);
    if (!out)
        abort ();
    return out;
}

static Nui__Common__V1__Transfer **transfers_copy (Nui__Common__V1__Transfer *const *list,
                                                   size_t count)
{
    Nui__Common__V1__Transfer **copy = view_alloc (count, sizeof (void *));
    for (size_t i = 0; i < count; i++)
        if (!(copy[i] = (Nui__Common__V1__Transfer *)pbcopy (&list[i]->base)))
            abort ();
    return copy;
}

static void transfers_free (Nui__Common__V1__Transfer **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nui__common__v1__transfer__free_unpacked (list[i], NULL);
    free (list);
}

Nui__Common__V1__Job *element_view (const Nui__Common__V1__Job *array, uint32_t element,
                                    struct err *err)
{
    Nui__Common__V1__Job *view = view_alloc (1, sizeof *view);
    *view = *array;
    view->components = view_alloc (view->n_components, sizeof *view->components);
    for (size_t i = 0; i < view->n_components; i++) {
        Nui__Common__V1__Component *c = view_alloc (1, sizeof *c);
        *c = *array->components[i];
        c->stage_in = transfers_copy (c->stage_in, c->n_stage_in);
        c->stage_out = transfers_copy (c->stage_out, c->n_stage_out);
        view->components[i] = c;
    }
    if (element_make (view, element, err) == 0)
        return view;
    view->uuid = (ProtobufCBinaryData){0, NULL};
    element_view_free (view);
    return NULL;
}

void element_view_free (Nui__Common__V1__Job *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->n_components; i++) {
        Nui__Common__V1__Component *c = view->components[i];
        transfers_free (c->stage_in, c->n_stage_in);
        transfers_free (c->stage_out, c->n_stage_out);
        free (c);
    }
    free (view->components);
    free (view->uuid.data);
    free (view);
}

/* ---- ids */

static int id_range_parse (char *text, struct element_range *out, struct err *err)
{
    uint64_t from, to, step = 1;
    char *colon = strchr (text, ':');
    if (colon)
        *colon++ = '\0';
    char *dash = strchr (text, '-');
    if (dash)
        *dash++ = '\0';
    if (uint_parse (text, "index", 0, ELEMENT_INDEX_MAX, &from, err) < 0 ||
        uint_parse (dash ? dash : text, "index", from, ELEMENT_INDEX_MAX, &to, err) < 0 ||
        (colon && uint_parse (colon, "step", 1, ELEMENT_INDEX_MAX, &step, err) < 0))
        return err ? err->code = ERR_INVALID : ERR_INVALID;
    *out = (struct element_range){(uint32_t)from, (uint32_t)to, (uint32_t)step};
    return 0;
}

int element_id_parse (const char *text, struct element_id *out, struct err *err)
{
    enum { RANGES = sizeof out->range / sizeof *out->range, TEXT_MAX = 1024 };
    char copy[TEXT_MAX], *rest;
    size_t len = strlen (text);
    *out = (struct element_id){.range_count = 0};
    char *open = NULL;
    if (len < sizeof copy) {
        memcpy (copy, text, len + 1);
        open = strchr (copy, '[');
    }
    if (!open)
        return id_parse (text, out->prefix, sizeof out->prefix, &out->number, err);
    *open++ = '\0';
    if (len < 3 || text[len - 1] != ']')
        return err_set (err, ERR_INVALID, "'%.80s': wanted indexes as in grid.42[3-7,9]", text);
    copy[len - 1] = '\0';
    int rc = id_parse (copy, out->prefix, sizeof out->prefix, &out->number, err);
    for (char *one = strtok_r (open, ",", &rest); one && rc == 0; one = strtok_r (NULL, ",", &rest))
        rc = out->range_count == RANGES
                 ? err_set (err, ERR_LIMIT, "'%.80s': more than %d ranges", text, RANGES)
                 : id_range_parse (one, &out->range[out->range_count++], err);
    if (rc == 0 && out->range_count == 0)
        rc = err_set (err, ERR_INVALID, "'%.80s' names no index", text);
    return rc;
}

int element_id_check (const char *text, struct err *err)
{
    struct element_id id;
    uint32_t index;
    if (!strchr (text, '['))
        return name_check ("grid job", text, err);
    int rc = element_id_parse (text, &id, err);
    return rc < 0 || element_id_single (&id, &index)
               ? rc
               : err_set (err, ERR_INVALID, "'%.60s' is not one job", text);
}

bool element_id_has (const struct element_id *id, uint32_t index)
{
    for (uint32_t i = 0; i < id->range_count; i++) {
        const struct element_range *r = &id->range[i];
        if (index >= r->from && index <= r->to && (index - r->from) % r->step == 0)
            return true;
    }
    return id->range_count == 0;
}

bool element_id_single (const struct element_id *id, uint32_t *index_out)
{
    *index_out = id->range[0].from;
    return id->range_count == 1 && id->range[0].to == id->range[0].from;
}

/* How many of them are one range. */
static uint32_t run_of (const uint32_t *at, uint32_t count)
{
    const uint32_t step = count > 1 ? at[1] - at[0] : 1;
    uint32_t n = 1;
    while (n < count && at[n] - at[n - 1] == step)
        n++;
    return n == 2 && step > 1 ? 1 : n; /* the second may begin a range of its own */
}

uint32_t element_ranges_fit (const uint32_t *at, uint32_t count, uint32_t ranges)
{
    uint32_t fit = 0;
    for (uint32_t r = 0; r < ranges && fit < count; r++)
        fit += run_of (at + fit, count - fit);
    return fit;
}

void element_ranges_text (const uint32_t *at, uint32_t count, size_t cap, struct strbuf *out)
{
    const size_t begin = out->len;
    for (uint32_t i = 0, n; i < count; i += n) {
        n = run_of (at + i, count - i);
        if (out->len - begin > cap) {
            strbuf_printf (out, ",…");
            return;
        }
        strbuf_printf (out, "%s%u", i ? "," : "", at[i]);
        if (n > 1)
            strbuf_printf (out, "-%u", at[i + n - 1]);
        if (n > 1 && at[i + 1] - at[i] > 1)
            strbuf_printf (out, ":%u", at[i + 1] - at[i]);
    }
}
