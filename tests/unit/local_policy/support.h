/* support: a policy with a few named credentials, shared by the tests of this folder. */
#ifndef NUI_TEST_LOCAL_POLICY_SUPPORT_H
#define NUI_TEST_LOCAL_POLICY_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "local/core/policy.h"

struct fixture {
    struct cred_names names;
    struct policy *policy;
};

static inline struct fixture fixture_make (void)
{
    struct fixture f;
    cred_names_init (&f.names);
    f.policy = NULL;
    return f;
}

/* The policy points at the names: make it where the fixture will stay. */
static inline struct policy *fixture_policy (struct fixture *f)
{
    f->policy = policy_create (&f->names);
    return f->policy;
}

static inline void fixture_seal (struct fixture *f)
{
    struct err err = {0};
    if (policy_seal (f->policy, &err) != 0)
        fail_msg ("%s", err.text);
}

static inline void fixture_free (struct fixture *f)
{
    policy_destroy (f->policy);
    cred_names_free (&f->names);
}

static inline uint32_t cred_id (struct fixture *f, enum cred_kind kind, const char *name)
{
    return strtab_intern (f->names.tab[kind], name);
}

static inline struct policy_cred *cred_edit (struct fixture *f, enum cred_kind kind,
                                             const char *name)
{
    return policy_cred_edit (f->policy, kind, cred_id (f, kind, name));
}

static inline void limit_set (struct policy_limits *l, enum limit_kind kind, int64_t soft,
                              int64_t hard)
{
    l->active_mask |= 1u << kind;
    l->active[LIMIT_SOFT][kind] = soft;
    l->active[LIMIT_HARD][kind] = hard;
}

#endif
