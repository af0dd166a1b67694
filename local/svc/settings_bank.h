/* settings_bank: AMCFG, Maui's words for what a site does when its bank does not pay or does not answer. */
#ifndef NUI_LOCAL_SVC_SETTINGS_BANK_H
#define NUI_LOCAL_SVC_SETTINGS_BANK_H

#include "proto/conf/conf.h"

/* Of a job that is about to start while the bank does not answer; by CANCEL also one that is refused. */
enum am_action {
    AM_WAIT,   /* on its nodes, until it does */
    AM_NONE,   /* started without a hold */
    AM_DEFER,
    AM_CANCEL,
};

/* What a run that the site's own nodes ended costs. */
enum am_node_failure {
    AM_CHARGE, /* what it used */
    AM_FREE,   /* nothing, and nothing before its end either */
};

struct settings_am {
    int action;       /* enum am_action: JFACTION */
    bool defer;       /* DEFERJOBONFAILURE */
    duration_us timeout; /* TIMEOUT: an answer that takes longer is none */
    duration_us flush;   /* FLUSHINTERVAL: running jobs are charged so often; TIME_US_MAX: never */
    duration_us anchors; /* ANCHORINTERVAL: a block of the bank's history is kept so often */
    int node_failure;    /* enum am_node_failure: NODEFAILURE */
    char machine[64];    /* MACHINE; "PARTITION": the one where a job runs; "": none */
};

/* AMCFG of a struct whose struct settings_am lies at its beginning. */
extern const struct conf_param settings_am_attrs[];
void settings_am_init (struct settings_am *am);
/* What is done with a job while the bank is away. */
enum am_action settings_am_away (const struct settings_am *am);

#endif
