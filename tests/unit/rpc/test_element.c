/* An array that was signed as one: which jobs it is, and that it is no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/job/element.h"

typedef Nui__Common__V1__Job Job;
typedef Nui__Common__V1__Envelope Envelope;

static uint8_t uuid[16] = {1, 2, 3};

/* The envelope of an array of these ranges; the caller frees the body. */
static Envelope envelope_of (const IndexRange *range, size_t count, uint32_t element)
{
    Envelope envelope = NUI__COMMON__V1__ENVELOPE__INIT;
    Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component part = NUI__COMMON__V1__COMPONENT__INIT, *parts[] = {&part};
    Nui__Common__V1__Transfer in = NUI__COMMON__V1__TRANSFER__INIT, *ins[] = {&in};
    IndexRange *ranges[8];
    for (size_t i = 0; i < count; i++)
        ranges[i] = (IndexRange *)(uintptr_t)&range[i];
    in.url = (char[]){"https://a.example/{index}.dat"};
    in.path = (char[]){"in/{index}"};
    part.name = (char[]){"main"};
    part.stage_in = ins;
    part.n_stage_in = 1;
    job.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    job.components = parts;
    job.n_components = 1;
    job.indexes = ranges;
    job.n_indexes = count;
    envelope.body.len = nui__common__v1__job__get_packed_size (&job);
    envelope.body.data = malloc (envelope.body.len + 1);
    nui__common__v1__job__pack (&job, envelope.body.data);
    envelope.element = element;
    return envelope;
}

static IndexRange range (uint32_t from, uint32_t to, uint32_t step)
{
    IndexRange r = NUI__COMMON__V1__INDEX_RANGE__INIT;
    r.from = from;
    r.to = to;
    r.step = step;
    return r;
}

/* What the envelope means; code 0 or why not. */
static Job *meant (Envelope envelope, int *code)
{
    struct err err = {0};
    Job *job = element_unpack (&envelope, &err);
    *code = job ? 0 : err.code;
    free (envelope.body.data);
    return job;
}

static void one_of_an_array (void **state)
{
    const IndexRange r[] = {range (0, 10, 5), range (12, 12, 0)};
    int code;
    (void)state;
    Job *five = meant (envelope_of (r, 2, 1 + 5), &code);
    Job *again = meant (envelope_of (r, 2, 1 + 5), &code);
    Job *twelve = meant (envelope_of (r, 2, 1 + 12), &code);
    assert_non_null (five);
    assert_non_null (again);
    assert_non_null (twelve);
    assert_int_equal (five->uuid.len, 16);
    assert_memory_equal (five->uuid.data, again->uuid.data, 16);
    assert_memory_not_equal (five->uuid.data, twelve->uuid.data, 16);
    assert_memory_not_equal (five->uuid.data, uuid, 16);
    assert_int_equal (five->array_id.len, 16);
    assert_memory_equal (five->array_id.data, uuid, 16);
    assert_int_equal (five->array_index, 5);
    assert_int_equal (five->array_count, 4);
    assert_int_equal (five->array_min, 0);
    assert_int_equal (five->array_max, 12);
    assert_string_equal (twelve->components[0]->stage_in[0]->url, "https://a.example/12.dat");
    assert_string_equal (twelve->components[0]->stage_in[0]->path, "in/12");
    assert_int_equal (element_count (five), 4);
    assert_int_equal (element_index (five, 2), 10);
    assert_int_equal (element_index (five, 3), 12);
    uint32_t all[4];
    element_indexes (five, all);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal (all[i], element_index (five, i));
    Job *const made[] = {five, again, twelve};
    for (size_t i = 0; i < 3; i++)
        nui__common__v1__job__free_unpacked (made[i], NULL);
}

/* A view says what a copy says, and what the array is stays as it was. */
static void a_view_is_the_same (void **state)
{
    const IndexRange r[] = {range (0, 10, 5), range (12, 12, 0)};
    int code;
    struct err err = {0};
    (void)state;
    Envelope envelope = envelope_of (r, 2, 1 + 10);
    Job *array = nui__common__v1__job__unpack (NULL, envelope.body.len, envelope.body.data);
    assert_int_equal (element_ready (array, &err), 0);
    Job *copy = meant (envelope, &code), *view = element_view (array, 1 + 10, &err);
    assert_non_null (copy);
    assert_non_null (view);
    uint8_t a[1024], b[1024];
    size_t len = nui__common__v1__job__get_packed_size (copy);
    assert_true (len <= sizeof a);
    assert_int_equal (nui__common__v1__job__get_packed_size (view), len);
    nui__common__v1__job__pack (copy, a);
    nui__common__v1__job__pack (view, b);
    assert_memory_equal (a, b, len);
    assert_ptr_equal (view->components[0]->name, array->components[0]->name);
    element_view_free (view);
    assert_string_equal (array->components[0]->stage_in[0]->path, "in/{index}");
    assert_memory_equal (array->uuid.data, uuid, sizeof uuid);
    assert_null (element_view (array, 1 + 11, &err));
    assert_int_equal (err.code, ERR_DENIED);
    assert_null (element_view (array, 0, &err));
    assert_int_equal (err.code, ERR_INVALID);
    nui__common__v1__job__free_unpacked (copy, NULL);
    nui__common__v1__job__free_unpacked (array, NULL);
}

/* Each index of a job of several components is one; all of them together are bounded as jobs are. */
static void of_several_components (void **state)
{
    Nui__Common__V1__Component part = NUI__COMMON__V1__COMPONENT__INIT, *parts[] = {&part, &part};
    Job job = NUI__COMMON__V1__JOB__INIT;
    IndexRange r = range (1, ELEMENTS_MAX / 2, 1), *ranges[] = {&r};
    struct err err = {0};
    (void)state;
    job.components = parts;
    job.n_components = 2;
    job.indexes = ranges;
    job.n_indexes = 1;
    assert_int_equal (element_check (&job, &err), 0);
    r.to++;
    assert_int_equal (element_check (&job, &err), ERR_LIMIT);
    job.n_components = 1;
    assert_int_equal (element_check (&job, &err), 0);
}

static void what_was_not_signed (void **state)
{
    const IndexRange r[] = {range (0, 10, 5)};
    int code;
    (void)state;
    assert_null (meant (envelope_of (r, 1, 1 + 6), &code)); /* beside the step */
    assert_int_equal (code, ERR_DENIED);
    assert_null (meant (envelope_of (r, 1, 1 + 15), &code));
    assert_int_equal (code, ERR_DENIED);
    assert_null (meant (envelope_of (r, 1, 0), &code));
    assert_int_equal (code, ERR_INVALID);
    assert_null (meant (envelope_of (NULL, 0, 1), &code)); /* of a job that is no array */
    assert_int_equal (code, ERR_INVALID);
    Job *plain = meant (envelope_of (NULL, 0, 0), &code);
    assert_non_null (plain);
    assert_memory_equal (plain->uuid.data, uuid, 16);
    assert_int_equal (plain->array_id.len, 0);
    nui__common__v1__job__free_unpacked (plain, NULL);
}

static void arrays_that_are_none (void **state)
{
    const struct {
        IndexRange r[2];
        size_t count;
        int code;
    } bad[] = {
        {{range (1, 10001, 1)}, 1, ERR_LIMIT},
        {{range (1, 6000, 1), range (6001, 10001, 1)}, 2, ERR_LIMIT},
        {{range (3, 2, 1)}, 1, ERR_INVALID},
        {{range (1, 5, 1), range (5, 7, 1)}, 2, ERR_INVALID}, /* 5 twice */
        {{range (6, 7, 1), range (1, 5, 1)}, 2, ERR_INVALID},
        {{range (0, UINT32_MAX, 0)}, 1, ERR_INVALID},
        {{range (0, ELEMENT_INDEX_MAX, UINT32_MAX)}, 1, ERR_INVALID},
    };
    int code;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null (meant (envelope_of (bad[i].r, bad[i].count, 1 + bad[i].r[0].from), &code));
        assert_int_equal (code, bad[i].code);
    }
    const IndexRange all = range (1, ELEMENTS_MAX, 1);
    Job *job = meant (envelope_of (&all, 1, 1 + ELEMENTS_MAX), &code);
    assert_non_null (job);
    nui__common__v1__job__free_unpacked (job, NULL);
}

static void ids (void **state)
{
    struct element_id id;
    struct err err = {0};
    uint32_t index;
    (void)state;
    assert_int_equal (element_id_parse ("grid.42", &id, &err), 0);
    assert_int_equal (id.range_count, 0);
    assert_int_equal (id.number, 42);
    assert_true (element_id_has (&id, 7));
    assert_false (element_id_single (&id, &index));
    assert_int_equal (element_id_parse ("grid.42[3-7,20-60:10]", &id, &err), 0);
    assert_string_equal (id.prefix, "grid");
    assert_int_equal (id.number, 42);
    assert_true (element_id_has (&id, 3) && element_id_has (&id, 7) && element_id_has (&id, 40));
    assert_false (element_id_has (&id, 8) || element_id_has (&id, 45));
    assert_int_equal (element_id_parse ("grid.42[0]", &id, &err), 0);
    assert_true (element_id_single (&id, &index));
    assert_int_equal (index, 0);
    assert_int_equal (element_id_check ("grid.42[7]", &err), 0);
    assert_int_equal (element_id_check ("grid.42", &err), 0);
    assert_int_equal (element_id_check ("grid.42[7-8]", &err), ERR_INVALID);
    assert_int_equal (element_id_check ("../x", &err), ERR_INVALID);
    const char *bad[] = {"grid.42[",     "grid.42[]",  "grid.42[3",  "grid.42[3]x",
                         "grid.42[7-3]", "grid[3]",    "[3]",        "grid.42[-3]",
                         "grid.42[3:0]", "grid.42[a]", "grid.042[3]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true (element_id_parse (bad[i], &id, &err) < 0);
}

static void told (const uint32_t *index, uint32_t count, size_t cap, const char *wanted)
{
    struct strbuf out = STRBUF_INIT;
    element_ranges_text (index, count, cap, &out);
    assert_string_equal (strbuf_text (&out), wanted);
    strbuf_free (&out);
}

static void ranges_as_text (void **state)
{
    (void)state;
    told ((const uint32_t[]){1, 2, 3, 4}, 4, 100, "1-4");
    told ((const uint32_t[]){0, 5, 10, 99}, 4, 100, "0-10:5,99");
    told ((const uint32_t[]){1, 7, 8, 9}, 4, 100, "1,7-9");
    told ((const uint32_t[]){3}, 1, 100, "3");
    told ((const uint32_t[]){1, 7, 20, 60}, 4, 3, "1,7,20,…");
    /* as many as are so many ranges */
    const uint32_t many[] = {0, 5, 10, 99, 200, 202, 300};
    assert_int_equal (element_ranges_fit (many, 7, 1), 3);
    assert_int_equal (element_ranges_fit (many, 7, 2), 4);
    assert_int_equal (element_ranges_fit (many, 7, 3), 5);
    assert_int_equal (element_ranges_fit (many, 7, 40), 7);
    assert_int_equal (element_ranges_fit (many, 0, 40), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (one_of_an_array),       cmocka_unit_test (a_view_is_the_same),
        cmocka_unit_test (of_several_components), cmocka_unit_test (what_was_not_signed),
        cmocka_unit_test (arrays_that_are_none),  cmocka_unit_test (ids),
        cmocka_unit_test (ranges_as_text),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
