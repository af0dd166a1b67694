/* STAGE…: how a site moves the files of jobs, and with whom. Read by settings.c; local/svc hands it to local/stage. */
#include <stddef.h>
#include <string.h>

#include "local/conf/settings_i.h"

static int list_add (struct settings_stage_list *list, const struct conf_value *value,
                     struct err *err)
{
    for (uint32_t i = 0; i < value->word_count; i++) {
        if (list->count == SETTINGS_STAGE_LIST_MAX)
            return err_set (err, ERR_LIMIT, "at most %d entries", SETTINGS_STAGE_LIST_MAX);
        list->item[list->count++] = value->word[i];
    }
    return 0;
}

static int set_roots (void *target, const struct conf_value *value, struct err *err)
{
    for (uint32_t i = 0; i < value->word_count; i++)
        if (value->word[i][0] != '/')
            return err_set (err, ERR_INVALID, "'%.200s' is no absolute path", value->word[i]);
    return list_add (&((struct settings_stage *)target)->roots, value, err);
}

static int set_hosts (void *target, const struct conf_value *value, struct err *err)
{
    return list_add (&((struct settings_stage *)target)->hosts, value, err);
}

/* "200M": K, M and G of 1024. */
static int rate_parse (const struct conf_value *value, int64_t *out, struct err *err)
{
    static const char suffix[] = "KMG";
    char text[32];
    unsigned shift = 0;
    uint64_t n;
    if (value->word_count != 1 || strlen (value->word[0]) >= sizeof text)
        return err_set (err, ERR_INVALID, "wanted bytes per second, as in 200M");
    strcpy (text, value->word[0]);
    size_t len = strlen (text);
    const char *s = len ? strchr (suffix, text[len - 1]) : NULL;
    if (s && *s) {
        shift = 10 * (unsigned)(s - suffix + 1);
        text[len - 1] = '\0';
    }
    if (uint_parse (text, "bytes per second", 1, (uint64_t)1 << 30, &n, err) != 0)
        return ERR_INVALID;
    *out = (int64_t)(n << shift);
    return 0;
}

static int set_bandwidth (void *target, const struct conf_value *value, struct err *err)
{
    return rate_parse (value, &((struct settings_stage *)target)->bandwidth, err);
}

static int set_rate_min (void *target, const struct conf_value *value, struct err *err)
{
    return rate_parse (value, &((struct settings_stage *)target)->rate_min, err);
}

#define AT(field) offsetof (struct settings_stage, field)
const struct conf_param settings_stage_params[] = {
    {.name = "STAGEROOT",
     .type = CONF_CALL,
     .set = set_roots,
     .flags = CONF_F_FIXED | CONF_F_ADDS,
     .help = "folders that file: may name"},
    {.name = "STAGEHOSTS",
     .type = CONF_CALL,
     .set = set_hosts,
     .flags = CONF_F_FIXED | CONF_F_ADDS,
     .help = "hosts that files may come from and go to"},
    {.name = "STAGECREDENTIALS",
     .type = CONF_PATH,
     .offset = AT (credentials),
     .help = "the file of stagecredentials(5)"},
    {.name = "STAGEKNOWNHOSTS",
     .type = CONF_PATH,
     .offset = AT (known_hosts),
     .help = "keys of hosts for sftp"},
    {.name = "STAGECA", .type = CONF_PATH, .offset = AT (ca), .help = "authorities for https"},
    {.name = "STAGEMAX",
     .type = CONF_INT,
     .offset = AT (transfers),
     .min = 1,
     .max = 1000,
     .initial = "8",
     .help = "transfers at a time"},
    {.name = "STAGEHOSTMAX",
     .type = CONF_INT,
     .offset = AT (host_transfers),
     .min = 1,
     .max = 1000,
     .initial = "4",
     .help = "transfers at a time with one host"},
    {.name = "STAGETRIES",
     .type = CONF_INT,
     .offset = AT (tries),
     .min = 1,
     .max = 1000,
     .initial = "8",
     .help = "how often a transfer is tried"},
    {.name = "STAGEFILEMAX",
     .type = CONF_MEMORY,
     .offset = AT (file_mb),
     .help = "largest file in MB; 0: any"},
    {.name = "STAGEKEEPFREE",
     .type = CONF_MEMORY,
     .offset = AT (keep_free_mb),
     .help = "MB that stay free on the disk"},
    {.name = "STAGES3PART",
     .type = CONF_MEMORY,
     .offset = AT (s3_part_mb),
     .min = 5,
     .max = 5 << 10,
     .initial = "64",
     .help = "MB of a part of an upload to s3"},
    {.name = "STAGEBANDWIDTH",
     .type = CONF_CALL,
     .set = set_bandwidth,
     .help = "bytes per second expected of a host that nothing is known of"},
    {.name = "STAGERATEMIN",
     .type = CONF_CALL,
     .set = set_rate_min,
     .help = "bytes per second that a source or target moves at least"},
    {.name = "STAGETIMEMAX",
     .type = CONF_DURATION,
     .offset = AT (time_max),
     .min = US_PER_S,
     .max = INT64_MAX / 4,
     .initial = "24:00:00",
     .help = "longest time that one file takes"},
    {.name = "STAGETIMEOUT",
     .type = CONF_DURATION,
     .offset = AT (patience),
     .min = US_PER_S,
     .max = 3600 * US_PER_S,
     .initial = "00:01:00",
     .help = "how long a transfer may stand still"},
    {.name = "INPUTMAX",
     .type = CONF_MEMORY,
     .offset = AT (input_mb),
     .initial = "1024",
     .help = "largest file in MB that travels with a job; 0: none does"},
    {.name = "INPUTSHARE",
     .type = CONF_MEMORY,
     .offset = AT (input_share_mb),
     .initial = "8192",
     .help = "MB of files that travel with jobs, of one account"},
    {.name = "INPUTKEEP",
     .type = CONF_DURATION,
     .offset = AT (input_keep),
     .min = 60 * US_PER_S,
     .max = INT64_MAX / 4,
     .initial = "7:00:00:00",
     .help = "how long they stay once no job needs them"},
    {.name = NULL},
};
#undef AT
