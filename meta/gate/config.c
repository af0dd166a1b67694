/* The keys of nui-gate.cfg, as one table for proto/conf. Called by main.c at the start and at a reload; it opens nothing. */
#include "meta/gate/config.h"

#include <stddef.h>
#include <stdlib.h>

#define AT(field) offsetof (struct gate_config, field)
#define TEXT(key, field)                                                                           \
    {                                                                                              \
        .name = key, .type = CONF_STRING, .offset = AT (field)                                     \
    }
#define COUNT(key, field, most, text)                                                              \
    {                                                                                              \
        .name = key, .type = CONF_INT, .offset = AT (field), .min = 1, .max = (most),              \
        .initial = text                                                                            \
    }

static int set_metas (void *target, const struct conf_value *value, struct err *err)
{
    struct gate_config *config = target;
    if (value->word_count > GATE_METAS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d metaschedulers", GATE_METAS_MAX);
    config->meta_count = value->word_count;
    for (uint32_t i = 0; i < value->word_count; i++)
        config->meta[i] = value->word[i];
    return 0;
}

static const struct conf_param params[] = {
    {.name = "META", .type = CONF_CALL, .set = set_metas},
    {.name = "BANK", .type = CONF_STRING, .offset = AT (bank), .flags = CONF_F_REQUIRED},
    TEXT ("HTTP", http),
    TEXT ("HTTPS", https),
    {.name = "HTTPSCERT", .type = CONF_PATH, .offset = AT (https_cert)},
    {.name = "HTTPSKEY", .type = CONF_PATH, .offset = AT (https_key)},
    TEXT ("FACILITY", facility),
    TEXT ("ORGANISATION", organisation),
    TEXT ("SUPPORT", support),
    COUNT ("HTTPCONNECTIONS", connections, 100000, "2000"),
    COUNT ("HTTPPERADDRESS", per_address, 100000, "1000"),
    COUNT ("HTTPRATE", requests_per_s, 100000, "200"),
    COUNT ("HTTPSTREAMS", streams, 100000, "1500"),
    {.name = "HTTPTIMEOUT",
     .type = CONF_DURATION,
     .offset = AT (timeout),
     .min = US_PER_S,
     .max = 600 * US_PER_S,
     .initial = "30"},
    {.name = NULL},
};

static int config_check (const struct gate_config *config, struct err *err)
{
    if (!config->meta_count)
        return err_set (err, ERR_INVALID, "META is missing");
    if (!config->http && !config->https)
        return err_set (err, ERR_INVALID, "neither HTTP nor HTTPS is given");
    if (config->https && (!config->https_cert || !config->https_key))
        return err_set (err, ERR_INVALID, "HTTPS needs HTTPSCERT and HTTPSKEY");
    if (config->http && door_check (config->http, false, err) < 0)
        return err->code;
    return config->https ? door_check (config->https, true, err) : 0;
}

struct gate_config *gate_config_read (struct conf *conf, struct err *err)
{
    struct gate_config *config = calloc (1, sizeof *config);
    if (!config)
        abort ();
    if (conf_table_read (conf, params, config, err) == 0 && config_check (config, err) == 0)
        return config;
    gate_config_destroy (config);
    return NULL;
}

void gate_config_destroy (struct gate_config *config)
{
    free (config);
}
