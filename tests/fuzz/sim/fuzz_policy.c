/* Any bytes as maui.cfg: a policy whose parts are in their ranges, or a sentence with the file's
 * name. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "local/conf/policyconf.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void check (const struct policy *p)
{
    assert (p->sealed && p->fs_depth >= 1 && p->fs_depth <= FS_DEPTH_MAX && p->fs_interval > 0);
    assert (p->bucket_count >= 1 && p->bucket_count <= POLICY_BUCKETS_MAX);
    for (int k = 0; k < CRED_KINDS; k++) {
        for (uint32_t i = 0; i < p->cred_count[k]; i++) {
            const struct policy_cred *c = &p->cred[k][i];
            assert (policy_cred (p, (enum cred_kind)k, c->id) == c);
            for (int l = 0; l < LIMIT_MINPROC; l++)
                assert (c->limits.active[LIMIT_SOFT][l] <= c->limits.active[LIMIT_HARD][l]);
        }
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct err err = {0};
    struct cred_names names;
    struct policy *policy = NULL;
    cred_names_init (&names);
    struct conf *conf = conf_parse ((const char *)data, size, "maui.cfg", &err);
    int rc = conf ? policy_conf_read (conf, &names, &policy, &err) : err.code;
    if (!rc)
        rc = policy_conf_known (conf, &err);
    if (!rc)
        rc = conf_finish (conf, &err);
    if (policy)
        check (policy);
    if (rc)
        assert (strstr (err.text, "maui.cfg"));
    policy_destroy (policy);
    conf_destroy (conf);
    cred_names_free (&names);
    return 0;
}
