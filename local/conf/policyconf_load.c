/* A policy alone, out of a site's whole file: what is the site's and not the policy's is known by the daemon's own tables and
 * passed over. For `nui sim`; nui-local reads the whole (settings.c). */
#include "local/conf/nodeconf.h"
#include "local/conf/policyconf.h"
#include "local/conf/settings_i.h"
#include "proto/rpc/daemon.h"

/* A file of Maui's own: it says where Maui's server, or a resource manager, is as none of ours does, or it is said to be one. */
static bool is_mauis (const struct conf *conf)
{
    static const char *const theirs[] = {"SERVERHOST", "SERVERNAME", "SERVERPORT", "RMTYPE",
                                         "ADMINHOST"};
    bool said = false;
    const struct conf_entry *e = conf_entry_last (conf, "MAUIFILE", NULL, NULL);
    if (e && bool_parse (e->value, &said, NULL) == 0)
        return said;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (conf_has (conf, theirs[i]))
            return true;
    return conf_entry_last (conf, "SCHEDCFG", NULL, "SERVER=") ||
           conf_entry_last (conf, "RMCFG", NULL, "TYPE=PBS");
}

int policy_conf_load (const char *path, struct cred_names *names, struct policy **policy_out,
                      struct conf **conf_out, struct err *err)
{
    static const struct conf_param *const others[] = {
        nodeconf_params, daemon_params,         NULL,
        settings_params, settings_stage_params, settings_mode_params};
    struct err local;
    struct policy *p = NULL;
    if (!err)
        err = &local;
    struct conf *conf = conf_read_all (path, err);
    if (!conf)
        return err->code;
    if (is_mauis (conf))
        conf_lenient (conf);
    policy_conf_read (conf, names, &p, err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i])
            conf_pass_over (conf, others[i], err);
        else
            policy_conf_known (
                conf, err); /* of those after it, what means nothing to a simulation is told */
    int rc = conf_finish (conf, err);
    if (rc) {
        policy_destroy (p);
        conf_destroy (conf);
        return rc;
    }
    *policy_out = p;
    if (conf_out)
        *conf_out = conf;
    else
        conf_destroy (conf);
    return 0;
}
