/* acl: access lists, owners and flags of reservations, as administrators write them.
 *
 * A list is names separated by ',', ':' or blanks, each with modifiers before or after it: '+' positive
 * affinity (default), '-' negative, '=' neutral, '!' denied, '*' required. Credentials that nobody has
 * used yet get their number here. */
#ifndef NUI_LOCAL_CONF_ACL_H
#define NUI_LOCAL_CONF_ACL_H

#include "local/core/types.h"

enum { ACL_ENTRIES_MAX = 4096, ACL_TEXT_MAX = 160 };

struct acl_list { /* owned by whoever has it */
    struct acl_entry *entry;
    uint32_t count;
    uint32_t cap;
};
void acl_list_free (struct acl_list *list);

/* Appends; nothing is appended when it fails. */
int acl_add_creds (struct acl_list *list, struct cred_names *names, enum cred_kind kind,
                   const char *text, struct err *err);
int acl_add_jobattrs (struct acl_list *list, const char *text, struct err *err);
/* "1:00:00", "<=1:00:00", ">4:00:00-": at most so long, unless a comparison says otherwise. */
int acl_add_duration (struct acl_list *list, const char *text, struct err *err);
/* "8", "<=8", ">=64". */
int acl_add_procs (struct acl_list *list, const char *text, struct err *err);

/* "USER:bob", "GROUP==bio". */
int acl_owner (struct cred_names *names, const char *text, struct acl_entry *out, struct err *err);
/* "SINGLEUSE,BYNAME": bits of rsv_flag. */
int acl_flags (const char *text, uint32_t *out, struct err *err);

/* "USER==bob+", "DURATION<=1:00:00+", "!USER==eve"; as diagnose -r prints it. Returns out. */
char *acl_entry_text (const struct acl_entry *entry, const struct cred_names *names,
                      char out[ACL_TEXT_MAX]);
/* The name of one flag bit; NULL: not one that is told. */
const char *acl_flag_name (uint32_t bit);

#endif
