/* The keys of nui-meta.cfg, as one table for proto/conf; what one key says of another is checked after all are read. Called by
 * main.c at the start and at a reload; it opens nothing. */
#include "meta/conf/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int site_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct metad_config *config = target;
    if (name_check ("site", index, err))
        return ERR_INVALID;
    for (uint32_t i = 0; i < config->site_count; i++) {
        if (strcmp (config->site[i].name, index) == 0) {
            *record_out = &config->site[i];
            return 0;
        }
    }
    if (config->site_count == CONFIG_SITES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d sites", CONFIG_SITES_MAX);
    struct metad_site_config *site = &config->site[config->site_count++];
    memset (site, 0, sizeof *site);
    memcpy (site->name, index, strlen (index) + 1);
    *record_out = site;
    return 0;
}

static int peer_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct metad_config *config = target;
    if (name_check ("metascheduler", index, err))
        return ERR_INVALID;
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (strcmp (config->peer[i].name, index) == 0) {
            *record_out = &config->peer[i];
            return 0;
        }
    }
    if (config->peer_count == QUORUM_MEMBERS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d metaschedulers in a group",
                        QUORUM_MEMBERS_MAX);
    struct metad_site_config *peer = &config->peer[config->peer_count++];
    memset (peer, 0, sizeof *peer);
    snprintf (peer->name, sizeof peer->name, "%s", index);
    *record_out = peer;
    return 0;
}

static int licence_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct metad_config *config = target;
    if (name_check ("licence", index, err))
        return ERR_INVALID;
    for (uint32_t i = 0; i < config->licence_count; i++) {
        if (strcmp (config->licence[i].name, index) == 0) {
            *record_out = &config->licence[i];
            return 0;
        }
    }
    if (config->licence_count == CONFIG_LICENCES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d licences", CONFIG_LICENCES_MAX);
    struct metad_licence *licence = &config->licence[config->licence_count++];
    snprintf (licence->name, sizeof licence->name, "%s", index);
    *record_out = licence;
    return 0;
}

static int limit_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct metad_config *config = target;
    if (name_check ("user", index, err))
        return ERR_INVALID;
    for (uint32_t i = 0; i < config->limit_count; i++) {
        if (strcmp (config->limit[i].user, index) == 0) {
            *record_out = &config->limit[i];
            return 0;
        }
    }
    if (config->limit_count == CONFIG_LIMITS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d users with limits", CONFIG_LIMITS_MAX);
    struct metad_limit *limit = &config->limit[config->limit_count++];
    snprintf (limit->user, sizeof limit->user, "%s", index);
    *record_out = limit;
    return 0;
}

static const struct conf_param limit_attrs[] = {
    {.name = "MAXJOB",
     .type = CONF_INT,
     .offset = offsetof (struct metad_limit, jobs),
     .min = 1,
     .max = 10000000},
    {.name = "MAXPROC",
     .type = CONF_INT,
     .offset = offsetof (struct metad_limit, procs),
     .min = 1,
     .max = INT64_C (1) << 40},
    {.name = NULL},
};

static const struct conf_param licence_attrs[] = {
    {.name = "COUNT",
     .type = CONF_INT,
     .offset = offsetof (struct metad_licence, count),
     .min = 1,
     .max = 1000000},
    {.name = NULL},
};

static const struct conf_param site_attrs[] = {
    {.name = "SERVER", .type = CONF_STRING, .offset = offsetof (struct metad_site_config, server)},
    {.name = NULL},
};

static bool is_url (const char *url)
{
    return strncmp (url, "http://", 7) == 0 || strncmp (url, "https://", 8) == 0;
}

/* "JOBSTART" …, "ALL"; 0: unknown. */
static unsigned hook_event_parse (const char *word)
{
    static const struct {
        const char *word;
        unsigned bits;
    } words[] = {{"JOBSTART", HOOK_JOB_START},
                 {"JOBEND", HOOK_JOB_END},
                 {"JOBRETRY", HOOK_JOB_RETRY},
                 {"SITELOST", HOOK_SITE_LOST},
                 {"ALL", HOOK_ALL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp (words[i].word, word) == 0)
            return words[i].bits;
    return 0;
}

static int set_events (void *target, const struct conf_value *value, struct err *err)
{
    struct metad_config *config = target;
    for (uint32_t i = 0; i < value->word_count; i++) {
        unsigned bits = hook_event_parse (value->word[i]);
        if (!bits)
            return err_set (err, ERR_INVALID,
                            "'%.40s': wanted JOBSTART, JOBEND, JOBRETRY, SITELOST or ALL",
                            value->word[i]);
        config->notify_events |= bits;
    }
    return 0;
}

/* The slash after the host's name keeps others that begin like it out. */
static int set_allow (void *target, const struct conf_value *value, struct err *err)
{
    struct metad_config *config = target;
    for (uint32_t i = 0; i < value->word_count; i++) {
        const char *url = value->word[i];
        if (!is_url (url) || !strchr (strstr (url, "//") + 2, '/'))
            return err_set (
                err, ERR_INVALID,
                "'%.100s': wanted the beginning of a URL with a / after its host, as in "
                "https://hooks.example.org/",
                url);
        if (config->notify_allow_count == CONFIG_ALLOW_MAX)
            return err_set (err, ERR_LIMIT, "more than %d URLs", CONFIG_ALLOW_MAX);
        config->notify_allow[config->notify_allow_count++] = url;
    }
    return 0;
}

static int set_mail_allow (void *target, const struct conf_value *value, struct err *err)
{
    struct metad_config *config = target;
    for (uint32_t i = 0; i < value->word_count; i++) {
        const char *domain = value->word[i];
        if (domain[0] != '@' || !domain[1])
            return err_set (err, ERR_INVALID, "'%.100s': wanted @DOMAIN, as in @example.org",
                            domain);
        if (config->mail_allow_count == CONFIG_ALLOW_MAX)
            return err_set (err, ERR_LIMIT, "more than %d domains", CONFIG_ALLOW_MAX);
        config->mail_allow[config->mail_allow_count++] = domain;
    }
    return 0;
}

#define MS INT64_C (1000)
#define DURATION(key, field, least, most, text)                                                    \
    {                                                                                              \
        .name = key, .type = CONF_DURATION, .offset = offsetof (struct metad_config, field),       \
        .min = (least), .max = (most), .initial = text                                             \
    }

static const struct conf_param params[] = {
    {.name = "BANK",
     .type = CONF_STRING,
     .offset = offsetof (struct metad_config, bank),
     .flags = CONF_F_REQUIRED},
    {.name = "SITECFG", .type = CONF_RECORD, .attrs = site_attrs, .record = site_record},
    {.name = "METACFG", .type = CONF_RECORD, .attrs = site_attrs, .record = peer_record},
    {.name = "GRIDUSERCFG", .type = CONF_RECORD, .attrs = limit_attrs, .record = limit_record},
    {.name = "GRIDLICENSE", .type = CONF_RECORD, .attrs = licence_attrs, .record = licence_record},
    DURATION ("TAKEOVERTIME", takeover, 3 * US_PER_S, 3600 * US_PER_S, "15"),
    DURATION ("LEASETIME", policy.lease, 2 * US_PER_S, 3600 * US_PER_S, "30"),
    DURATION ("COALLOCLEAD", policy.lead, 0, 3600 * US_PER_S, "2"),
    DURATION ("BARRIERTIMEOUT", policy.barrier_timeout, US_PER_S, 86400 * US_PER_S, "60"),
    DURATION ("PREPARETIMEOUT", policy.prepare_timeout, US_PER_S, 3600 * US_PER_S, "10"),
    DURATION ("HORIZON", horizon, 60 * US_PER_S, 366 * 86400 * US_PER_S, "30:00:00:00"),
    DURATION ("MOVEINTERVAL", move_interval, 0, 86400 * US_PER_S, "5:00"),
    DURATION ("MOVEGAIN", move_gain, US_PER_S, 366 * 86400 * US_PER_S, "1:00"),
    DURATION ("SITELOSTTIME", site_lost, 15 * US_PER_S, 366 * 86400 * US_PER_S, "1:00:00"),
    {.name = "NOTIFICATIONURL",
     .type = CONF_STRING,
     .offset = offsetof (struct metad_config, notify_url)},
    {.name = "NOTIFICATIONEVENTS", .type = CONF_CALL, .set = set_events},
    {.name = "NOTIFICATIONKEY",
     .type = CONF_PATH,
     .offset = offsetof (struct metad_config, notify_key)},
    {.name = "NOTIFICATIONCA",
     .type = CONF_PATH,
     .offset = offsetof (struct metad_config, notify_ca)},
    {.name = "NOTIFICATIONALLOW", .type = CONF_CALL, .set = set_allow},
    {.name = "MAILSERVER",
     .type = CONF_STRING,
     .offset = offsetof (struct metad_config, mail_server)},
    {.name = "MAILFROM", .type = CONF_STRING, .offset = offsetof (struct metad_config, mail_from)},
    {.name = "MAILALLOW", .type = CONF_CALL, .set = set_mail_allow},
    DURATION ("MAILDELAY", mail_delay, 0, 86400 * US_PER_S, "1:00"),
    {.name = "MOVESHARE",
     .type = CONF_INT,
     .offset = offsetof (struct metad_config, move_share),
     .min = 0,
     .max = 100,
     .initial = "20"},
    {.name = "LIVEJOBSMAX",
     .type = CONF_INT,
     .offset = offsetof (struct metad_config, live_jobs_max),
     .min = 1,
     .max = 10000000,
     .initial = "500000"},
    {.name = "INPUTMAX",
     .type = CONF_MEMORY,
     .offset = offsetof (struct metad_config, input_mb),
     .initial = "1024"},
    {.name = "INPUTSHARE",
     .type = CONF_MEMORY,
     .offset = offsetof (struct metad_config, input_share_mb),
     .initial = "8192"},
    DURATION ("INPUTKEEP", input_keep, 60 * US_PER_S, 366 * 86400 * US_PER_S, "7:00:00:00"),
    {.name = "JOBHISTORYTIME",
     .type = CONF_DURATION,
     .offset = offsetof (struct metad_config, job_history),
     .min = US_PER_S,
     .max = INT64_MAX / 4,
     .flags = CONF_F_INFINITY,
     .initial = "INFINITY"},
    {.name = "ATTEMPTSMAX",
     .type = CONF_INT,
     .offset = offsetof (struct metad_config, tries_max),
     .min = 1,
     .max = 10000,
     .initial = "20"},
    {.name = NULL},
};

static int site_compare (const void *a, const void *b)
{
    return strcmp (((const struct metad_site_config *)a)->name,
                   ((const struct metad_site_config *)b)->name);
}

/* One line: the secret that the receiver knows, too. */
static int key_read (struct metad_config *config, struct err *err)
{
    FILE *file = config->notify_key ? fopen (config->notify_key, "r") : NULL;
    if (!file)
        return config->notify_key
                   ? err_set (err, ERR_INVALID, "NOTIFICATIONKEY %.200s cannot be read",
                              config->notify_key)
                   : 0;
    size_t len = fread (config->notify_secret, 1, sizeof config->notify_secret, file);
    fclose (file);
    while (len &&
           (config->notify_secret[len - 1] == '\n' || config->notify_secret[len - 1] == '\r'))
        len--;
    config->notify_secret_len = len;
    return len >= 16 && len < sizeof config->notify_secret
               ? 0
               : err_set (err, ERR_INVALID,
                          "NOTIFICATIONKEY %.200s: wanted a line of 16 to 255 characters",
                          config->notify_key);
}

static int notify_config_check (struct metad_config *config, struct err *err)
{
    if (!config->notify_events)
        config->notify_events = HOOK_ALL;
    if (config->notify_url && !is_url (config->notify_url))
        return err_set (err, ERR_INVALID, "NOTIFICATIONURL '%.200s': wanted http:// or https://",
                        config->notify_url);
    if (config->mail_server && strncmp (config->mail_server, "smtp://", 7) != 0 &&
        strncmp (config->mail_server, "smtps://", 8) != 0)
        return err_set (err, ERR_INVALID, "MAILSERVER '%.200s': wanted smtp://HOST or smtps://HOST",
                        config->mail_server);
    if (!config->mail_server != !config->mail_from ||
        (config->mail_from && !strchr (config->mail_from, '@')))
        return err_set (err, ERR_INVALID, "MAILSERVER and MAILFROM, an address, belong together");
    if (config->notify_ca && access (config->notify_ca, R_OK) != 0)
        return err_set (err, ERR_INVALID, "NOTIFICATIONCA %.200s cannot be read",
                        config->notify_ca);
    return key_read (config, err);
}

static int config_check (struct metad_config *config, struct err *err)
{
    for (uint32_t i = 0; i < config->site_count; i++)
        if (!config->site[i].server)
            return err_set (err, ERR_INVALID, "SITECFG[%s] has no SERVER=host:port",
                            config->site[i].name);
    for (uint32_t i = 0; i < config->peer_count; i++)
        if (!config->peer[i].server)
            return err_set (err, ERR_INVALID, "METACFG[%s] has no SERVER=host:port",
                            config->peer[i].name);
    for (uint32_t i = 0; i < config->licence_count; i++)
        if (!config->licence[i].count)
            return err_set (err, ERR_INVALID, "GRIDLICENSE[%s] has no COUNT",
                            config->licence[i].name);
    if (config->peer_count && (config->peer_count < 3 || config->peer_count % 2 == 0))
        return err_set (err, ERR_INVALID,
                        "METACFG names %u metaschedulers: a group has 3, 5 or 7, this one included",
                        config->peer_count);
    if (config->peer_count && config->job_history != TIME_US_MAX)
        return err_set (
            err, ERR_INVALID,
            "JOBHISTORYTIME: a group (METACFG) keeps all its jobs, so that a member that was away "
            "can hear how each ended");
    for (uint32_t i = 0; i < config->limit_count; i++) {
        const struct metad_limit *limit = &config->limit[i];
        if (!limit->jobs && !limit->procs)
            return err_set (err, ERR_INVALID, "GRIDUSERCFG[%s] has neither MAXJOB nor MAXPROC",
                            limit->user);
        if ((limit->jobs && limit->jobs < config->peer_count) ||
            (limit->procs && limit->procs < config->peer_count))
            return err_set (err, ERR_INVALID,
                            "GRIDUSERCFG[%s]: each of %u metaschedulers gives out a share: a limit "
                            "is as many or more",
                            limit->user, config->peer_count);
    }
    if (config->policy.prepare_timeout + config->policy.lease_margin > config->policy.lease)
        return err_set (err, ERR_INVALID,
                        "LEASETIME must be at least a second longer than PREPARETIMEOUT");
    return notify_config_check (config, err);
}

struct metad_config *metad_config_read (struct conf *conf, struct err *err)
{
    struct metad_config *config = calloc (1, sizeof *config);
    if (config)
        config->site = calloc (CONFIG_SITES_MAX, sizeof *config->site);
    if (!config || !config->site) {
        metad_config_destroy (config);
        err_set (err, ERR_NOMEM, "no memory for the configuration");
        return NULL;
    }
    config->policy = (struct coalloc_policy){
        .lease_margin = US_PER_S,
        .start_margin = 250 * MS,
        .backoff_max = 10 * US_PER_S,
        .wait_site_down = 4 * US_PER_S,
        .wait_slot = 60 * US_PER_S,
        .resend_first = 100 * MS,
        .resend_max = 5 * US_PER_S,
        .age_unit = 60 * US_PER_S,
        .reprepares_max = 2,
    };
    if (conf_table_read (conf, params, config, err) || config_check (config, err)) {
        metad_config_destroy (config);
        return NULL;
    }
    config->policy.tries_max = (uint32_t)config->tries_max;
    qsort (config->peer, config->peer_count, sizeof *config->peer, site_compare);
    qsort (config->site, config->site_count, sizeof *config->site, site_compare);
    return config;
}

void metad_config_destroy (struct metad_config *config)
{
    if (!config)
        return;
    free (config->site);
    free (config);
}
