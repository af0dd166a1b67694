/* config: the metascheduler's own keys of nui-meta.cfg. Keys and defaults are in nui-meta(8); those
 * that every daemon has (GRID, LISTEN, CA …) are read by proto/rpc/daemon. */
#ifndef NUI_META_CONF_CONFIG_H
#define NUI_META_CONF_CONFIG_H

#include "meta/core/coalloc.h"
#include "meta/core/quorum.h"
#include "proto/base/err.h"
#include "proto/conf/conf.h"

enum hook_event { /* bits of notify_events: what webhooks are told of */
                  HOOK_JOB_START = 1 << 0,
                  HOOK_JOB_END = 1 << 1,
                  HOOK_JOB_RETRY = 1 << 2,
                  HOOK_SITE_LOST = 1 << 3,
                  HOOK_ALL = (1 << 4) - 1,
};
enum {
    CONFIG_SITES_MAX = 1000,
    CONFIG_ALLOW_MAX = 32,
    CONFIG_LICENCES_MAX = 256,
    CONFIG_LIMITS_MAX = 1000
};

/* A site, or a metascheduler of the group. */
struct metad_site_config {
    char name[COALLOC_NAME_MAX];
    const char *server; /* host:port; lives as long as the conf */
};

/* GRIDLICENSE */
struct metad_licence {
    char name[COALLOC_NAME_MAX];
    int64_t count;
};

/* GRIDUSERCFG */
struct metad_limit {
    char user[COALLOC_NAME_MAX]; /* or "DEFAULT" */
    int64_t jobs, procs;         /* 0: no limit */
};

struct metad_config {
    struct metad_limit limit[CONFIG_LIMITS_MAX];
    uint32_t limit_count;
    const char *bank;
    struct metad_licence licence[CONFIG_LICENCES_MAX]; /* as in the file */
    uint32_t licence_count;
    struct metad_site_config peer[QUORUM_MEMBERS_MAX]; /* METACFG, itself too; ascending by name */
    uint32_t peer_count;                               /* 0: it decides alone */
    duration_us takeover;           /* silence after which others go on with what one had decided */
    struct metad_site_config *site; /* ascending by name */
    uint32_t site_count;
    duration_us horizon;
    int64_t tries_max;
    duration_us move_interval; /* between looks for a better site; 0: queued jobs stay */
    duration_us move_gain;
    int64_t move_share;               /* in percent */
    int64_t live_jobs_max;            /* of all users: share.h */
    int64_t input_mb, input_share_mb; /* INPUTMAX, INPUTSHARE: proto/content/contents.h */
    duration_us input_keep;
    duration_us job_history; /* forget.h; TIME_US_MAX: for ever */
    duration_us site_lost;   /* silent for so long: lost (loss.h) */
    struct coalloc_policy policy;
    const char *notify_url; /* hooks.h; NULL: none */
    unsigned notify_events;
    const char *notify_key, *notify_ca;       /* files */
    const char *mail_server, *mail_from;      /* mail.h; NULL: none is sent */
    const char *mail_allow[CONFIG_ALLOW_MAX]; /* "@example.org": where it may go */
    uint32_t mail_allow_count;
    duration_us mail_delay;
    char notify_secret[256];
    size_t notify_secret_len;
    const char *notify_allow[CONFIG_ALLOW_MAX]; /* what users' URLs may begin with */
    uint32_t notify_allow_count;
};

/* Takes its keys out of conf; NULL with the file, line and reason in err. */
struct metad_config *metad_config_read (struct conf *conf, struct err *err);
void metad_config_destroy (struct metad_config *config); /* NULL is a no-op */

#endif
