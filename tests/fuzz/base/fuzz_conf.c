/* Any bytes as a configuration file: taken whole, or refused with a sentence that names the file, and
 * the line where there is one. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "proto/conf/conf.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

struct target {
    int64_t number;
    duration_us time;
    int word;
    bool flag;
    const char *text, *path;
};

static const char *const words[] = {"FIRSTFIT", "BESTFIT", NULL};

static int call (void *target, const struct conf_value *value, struct err *err)
{
    (void)target, (void)err;
    assert (value->text && value->key);
    for (uint32_t i = 0; i < value->word_count; i++)
        assert (value->word[i]);
    return 0;
}

static int record (void *target, const char *index, void **out, struct err *err)
{
    (void)err;
    assert (index && *index);
    *out = target;
    return 0;
}

static const struct conf_param attrs[] = {
    {.name = "A", .type = CONF_INT, .offset = offsetof (struct target, number)},
    {.name = "B", .type = CONF_CALL, .set = call, .flags = CONF_F_ATTR_INDEX},
    {0}};

static const struct conf_param table[] = {
    {.name = "N", .type = CONF_INT, .offset = offsetof (struct target, number)},
    {.name = "T", .type = CONF_DURATION, .offset = offsetof (struct target, time)},
    {.name = "W", .type = CONF_WORD, .offset = offsetof (struct target, word), .words = words},
    {.name = "F", .type = CONF_BOOL, .offset = offsetof (struct target, flag)},
    {.name = "S", .type = CONF_TEXT, .offset = offsetof (struct target, text)},
    {.name = "P", .type = CONF_PATH, .offset = offsetof (struct target, path)},
    {.name = "C", .type = CONF_CALL, .set = call, .flags = CONF_F_INDEX},
    {.name = "R", .type = CONF_RECORD, .attrs = attrs, .record = record},
    {.name = "U", .type = CONF_UNSUPPORTED},
    {0}};

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct target target = {0};
    struct conf *conf = conf_parse ((const char *)data, size, "/d/f.cfg", &err);
    if (!conf) {
        assert (err.code < 0 && strstr (err.text, "/d/f.cfg: "));
        return 0;
    }
    int rc = conf_table_read (conf, table, &target, &err);
    if (rc == 0)
        rc = conf_finish (conf, &err);
    if (rc < 0)
        assert (strstr (err.text, "/d/f.cfg: line "));
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *entry = conf_entry (conf, i);
        assert (entry->line > 0 && entry->key[0]);
        assert (i == 0 || entry->line > conf_entry (conf, i - 1)->line);
    }
    conf_destroy (conf);
    return 0;
}
