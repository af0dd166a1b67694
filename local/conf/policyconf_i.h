/* policyconf_i: what the parts of policyconf share. Private to local/conf. */
#ifndef NUI_LOCAL_CONF_POLICYCONF_I_H
#define NUI_LOCAL_CONF_POLICYCONF_I_H

#include "local/conf/policyconf.h"

/* A policy while its file is read, and what waits for the rest of the file. */
struct policy_file {
    struct policy *policy;
    struct standing_file *standing;
    const char *threshold_text; /* read once the type is known */
    uint32_t threshold_line;
    struct older_limit *older; /* policyconf_older.c; in the policy's arena */
};

/* What record () gives for USERCFG[x] and its kin: a place, since records may move. */
struct cred_ref {
    struct policy *policy;
    enum cred_kind kind;
    uint32_t id;
};

/* policyconf_cred.c */
extern const struct conf_param policy_user_attrs[];  /* users, groups, accounts */
extern const struct conf_param policy_class_attrs[]; /* … and what only classes have */
extern const struct conf_param policy_qos_attrs[];
extern const struct conf_param policy_system_attrs[];    /* SYSCFG */
extern const struct conf_param policy_partition_attrs[]; /* PARCFG */
int policy_record_partition (void *target, const char *index, void **record_out, struct err *err);
int policy_record_user (void *target, const char *index, void **record_out, struct err *err);
int policy_record_group (void *target, const char *index, void **record_out, struct err *err);
int policy_record_account (void *target, const char *index, void **record_out, struct err *err);
int policy_record_class (void *target, const char *index, void **record_out, struct err *err);
int policy_record_qos (void *target, const char *index, void **record_out, struct err *err);
int policy_record_system (void *target, const char *index, void **record_out, struct err *err);
/* QOSXFTARGET[hi] 5, QOSQTTARGET[hi] 00:30:00 … as the manual's chapter on priority writes them. */
int policy_set_qos_parameter (void *target, const struct conf_value *value, struct err *err);
/* "hi:lo,medium" to numbers in the policy's arena. */
int policy_qos_list (struct policy *policy, const char *text, uint32_t **qos_out,
                     uint32_t *count_out, struct err *err);

/* Is that a limit, or soft,hard, of "JOB", "PROC" … ("JOBQUEUED": of idle jobs)? */
int policy_limit_check (const char *limit, const char *text, struct err *err);
/* USERCFG[DEFAULT] MAXJOB=text and its kin, unless the file has said it itself. */
int policy_default_limit (struct policy *policy, enum cred_kind kind, const char *limit,
                          const char *text, struct err *err);

/* policyconf_older.c: once USERCFG and its kin are read. */
int policy_older_take (struct policy_file *file, struct err *err);

/* policyconf_standing.c */
extern const struct conf_param policy_standing_attrs[];
struct standing_file *policy_standing_begin (struct policy *policy, struct conf *conf);
/* Into the policy, and what was read is freed. */
int policy_standing_end (struct standing_file *standing, const char *file, struct err *err);
int policy_record_standing (void *target, const char *index, void **record_out, struct err *err);
int policy_set_standing (void *target, const struct conf_value *value, struct err *err);

/* policyconf_place.c: CONF_CALL functions; who shares a node, in words and values of enum node_access */
extern const char *const policy_access_words[];
extern const int policy_access_values[];
/* The number of a partition of this name, which may be new. */
int policy_partition_number (struct policy *p, const char *name, uint32_t *out, struct err *err);
int policy_set_node_availability (void *target, const struct conf_value *value, struct err *err);
int policy_set_resource_limit (void *target, const struct conf_value *value, struct err *err);
int policy_set_node_load (void *target, const struct conf_value *value, struct err *err);
int policy_set_nodeset (void *target, const struct conf_value *value, struct err *err);
int policy_set_plist (void *target, const struct conf_value *value, struct err *err);
int policy_set_pdef (void *target, const struct conf_value *value, struct err *err);
int policy_set_system_plist (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_wall (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_count (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_per_job (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_text (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_access (void *target, const struct conf_value *value, struct err *err);
int policy_set_class_people (void *target, const struct conf_value *value, struct err *err);

#endif
