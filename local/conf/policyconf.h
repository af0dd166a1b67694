/* policyconf: the scheduling policy out of maui.cfg.
 *
 * Reads every parameter of struct policy from a parsed file (proto/conf). Both spellings of the
 * priority weights are taken (the manual's RESWEIGHT, FSUSERWEIGHT; the papers' RESOURCEWEIGHT,
 * USERFSWEIGHT). A file is taken whole or refused whole: an error names file, line and reason. A
 * parameter of Maui's that is not implemented becomes a note of the conf (conf_note), by name and
 * line; one that nobody knows is refused by conf_finish.
 *
 * A reload is the same call again on the same names: it builds a new policy. */
#ifndef NUI_LOCAL_CONF_POLICYCONF_H
#define NUI_LOCAL_CONF_POLICYCONF_H

#include "local/core/policy.h"
#include "proto/conf/conf.h"

/* Every parameter of a policy: those with a field of struct policy, and those with a form of their own. */
extern const struct conf_param policy_params[], policy_file_params[], policy_older_params[];
/* Maui's that Nui does not have, each with what there is in its place. */
extern const struct conf_param policy_known_params[];

/* Builds a sealed policy; the caller owns it. For a program with tables of its own: call this for the policy's part,
 * conf_table_read for the rest, policy_conf_known last, then conf_finish. */
int policy_conf_read (struct conf *conf, struct cred_names *names, struct policy **policy_out,
                      struct err *err);
/* Notes what is Maui's but not ours, among the keys that no other table took. */
int policy_conf_known (struct conf *conf, struct err *err);

/* A policy alone, out of a maui.cfg or of a site's whole file: all of the above in one.
 * *conf_out (may be NULL) keeps the notes; the caller destroys it. */
int policy_conf_load (const char *path, struct cred_names *names, struct policy **policy_out,
                      struct conf **conf_out, struct err *err);

#endif
