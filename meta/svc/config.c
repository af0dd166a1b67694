#include "meta/svc/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        return err_set (err, ERR_LIMIT, "more than %d metaschedulers in a group", QUORUM_MEMBERS_MAX);
    struct metad_site_config *peer = &config->peer[config->peer_count++];
    memset (peer, 0, sizeof *peer);
    snprintf (peer->name, sizeof peer->name, "%s", index);
    *record_out = peer;
    return 0;
}

static const struct conf_param site_attrs[] = {
    {.name = "SERVER", .type = CONF_STRING, .offset = offsetof (struct metad_site_config, server)},
    {.name = NULL},
};

#define MS INT64_C (1000)
#define DURATION(key, field, least, most, text)                                                    \
    {.name = key, .type = CONF_DURATION, .offset = offsetof (struct metad_config, field),          \
     .min = (least), .max = (most), .initial = text}

static const struct conf_param params[] = {
    {.name = "BANK", .type = CONF_STRING, .offset = offsetof (struct metad_config, bank),
     .flags = CONF_F_REQUIRED},
    {.name = "SITECFG", .type = CONF_RECORD, .attrs = site_attrs, .record = site_record},
    {.name = "METACFG", .type = CONF_RECORD, .attrs = site_attrs, .record = peer_record},
    DURATION ("TAKEOVERTIME", takeover, 3 * US_PER_S, 3600 * US_PER_S, "15"),
    DURATION ("LEASETIME", policy.lease, 2 * US_PER_S, 3600 * US_PER_S, "30"),
    DURATION ("COALLOCLEAD", policy.lead, 0, 3600 * US_PER_S, "2"),
    DURATION ("BARRIERTIMEOUT", policy.barrier_timeout, US_PER_S, 86400 * US_PER_S, "60"),
    DURATION ("PREPARETIMEOUT", policy.prepare_timeout, US_PER_S, 3600 * US_PER_S, "10"),
    DURATION ("HORIZON", horizon, 60 * US_PER_S, 366 * 86400 * US_PER_S, "30:00:00:00"),
    DURATION ("MOVEINTERVAL", move_interval, 0, 86400 * US_PER_S, "5:00"),
    DURATION ("MOVEGAIN", move_gain, US_PER_S, 366 * 86400 * US_PER_S, "5:00"),
    DURATION ("SITELOSTTIME", site_lost, 15 * US_PER_S, 366 * 86400 * US_PER_S, "1:00:00"),
    {.name = "MOVESHARE", .type = CONF_INT, .offset = offsetof (struct metad_config, move_share),
     .min = 0, .max = 100, .initial = "20"},
    {.name = "ATTEMPTSMAX", .type = CONF_INT, .offset = offsetof (struct metad_config, tries_max),
     .min = 1, .max = 10000, .initial = "20"},
    {.name = NULL},
};

static int site_compare (const void *a, const void *b)
{
    return strcmp (((const struct metad_site_config *)a)->name,
                   ((const struct metad_site_config *)b)->name);
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
    if (config->peer_count && (config->peer_count < 3 || config->peer_count % 2 == 0))
        return err_set (err, ERR_INVALID,
                        "METACFG names %u metaschedulers: a group has 3, 5 or 7, this one included",
                        config->peer_count);
    if (config->policy.prepare_timeout + config->policy.lease_margin > config->policy.lease)
        return err_set (err, ERR_INVALID,
                        "LEASETIME must be at least a second longer than PREPARETIMEOUT");
    return 0;
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
