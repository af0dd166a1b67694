/* AMCFG, Maui's words for what a site does when its bank does not pay or does not answer. Read by settings.c. */
#include <stddef.h>
#include <stdio.h>

#include "local/conf/settings_i.h"

static const char *const actions[] = {
    [AM_WAIT] = "WAIT", [AM_NONE] = "NONE", [AM_DEFER] = "DEFER", [AM_CANCEL] = "CANCEL", NULL,
};

static const char *const failures[] = {[AM_CHARGE] = "CHARGE", [AM_FREE] = "FREE", NULL};

#define AT(field) offsetof (struct settings_am, field)
static const char elsewhere[] =
    "the bank is Nui's own: BANK says where it is; what a job costs is in its rate cards";

static int set_machine (void *target, const struct conf_value *value, struct err *err)
{
    struct settings_am *am = target;
    if (name_check ("machine", value->text, err) < 0)
        return err->code;
    snprintf (am->machine, sizeof am->machine, "%s", value->text);
    return 0;
}

/* As Maui 3.0 wrote it; AMCFG's own counts. */
int settings_am_bank_fallback (void *target, const struct conf_value *value, struct err *err)
{
    struct settings_am *am = &((struct settings *)target)->am;
    if (name_check ("account", value->text, err) < 0)
        return err->code;
    snprintf (am->older, sizeof am->older, "%s", value->text);
    return 0;
}

int settings_am_bank_defer (void *target, const struct conf_value *value, struct err *err)
{
    return bool_parse (value->text, &((struct settings *)target)->am.defer, err);
}

static int set_fallback (void *target, const struct conf_value *value, struct err *err)
{
    struct settings_am *am = target;
    if (name_check ("account", value->text, err) < 0)
        return err->code;
    snprintf (am->fallback, sizeof am->fallback, "%s", value->text);
    return 0;
}

const struct conf_param settings_am_attrs[] = {
    {.name = "JFACTION", .type = CONF_WORD, .offset = AT (action), .words = actions},
    {.name = "DEFERJOBONFAILURE", .type = CONF_BOOL, .offset = AT (defer)},
    {.name = "TIMEOUT",
     .type = CONF_DURATION,
     .offset = AT (timeout),
     .min = US_PER_S,
     .max = 600 * US_PER_S},
    {.name = "FLUSHINTERVAL",
     .type = CONF_DURATION,
     .offset = AT (flush),
     .min = US_PER_S,
     .max = INT64_MAX / 4,
     .flags = CONF_F_INFINITY},
    {.name = "ANCHORINTERVAL",
     .type = CONF_DURATION,
     .offset = AT (anchors),
     .min = US_PER_S,
     .max = 30 * 24 * 3600 * US_PER_S},
    {.name = "NODEFAILURE", .type = CONF_WORD, .offset = AT (node_failure), .words = failures},
    {.name = "FALLBACKACCOUNT", .type = CONF_CALL, .set = set_fallback},
    {.name = "MACHINE", .type = CONF_CALL, .set = set_machine},
    CONF_TOLD ("TYPE", elsewhere),
    CONF_TOLD ("SERVER", elsewhere),
    CONF_TOLD ("HOST", elsewhere),
    CONF_TOLD ("PORT", elsewhere),
    CONF_TOLD ("CHARGEPOLICY", elsewhere),
    CONF_TOLD (
        "JOBFAILUREACTION",
        "JFACTION says what becomes of a job that the bank does not pay for, or while it is away"),
    CONF_TOLD ("WIREPROTOCOL", elsewhere),
    CONF_TOLD ("SOCKETPROTOCOL", elsewhere),
    CONF_TOLD ("CHARGERATE", elsewhere),
    CONF_TOLD ("APPENDMACHINENAME",
               "an account is the same on all sites; the bank knows which site charges"),
    {.name = NULL},
};

void settings_am_init (struct settings_am *am)
{
    *am = (struct settings_am){.action = AM_WAIT,
                               .timeout = 10 * US_PER_S,
                               .flush = 24 * 3600 * US_PER_S,
                               .anchors = 3600 * US_PER_S};
}

enum am_action settings_am_away (const struct settings_am *am)
{
    if (am->defer && (am->action == AM_WAIT || am->action == AM_NONE))
        return AM_DEFER;
    return (enum am_action)am->action;
}
