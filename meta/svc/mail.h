/* mail: what users are told by mail of their jobs (nui submit --mail): notices of hooks.h whose URL is an address. They wait
 * MAILDELAY for others of the same address, and all go in one mail. */
#ifndef NUI_META_SVC_MAIL_H
#define NUI_META_SVC_MAIL_H

#include "meta/job/job.h"
#include "meta/store/notice.h"
#include "proto/job/mailaddress.h"

/* Whether this grid sends mail, and there. ERR_DENIED, ERR_INVALID. */
int mail_check (const struct metad_config *config, const char *url, struct err *err);
/* Of an address that is checked: the job runs without mail, too. */
bool mail_perhaps (const char *url);
/* Whether that address wants to hear of it: bit of enum hook_event; files: they could not be taken away. */
bool mail_wants (const char *url, const struct gridjob *job, unsigned bit, bool files);
/* The mail with its headers, of JSON documents as hooks.c writes them; in the arena. */
char *mail_text (const struct metad *metad, const char *to, const char *key,
                 const struct notice_row *rows, uint32_t count, struct arena *arena);

#endif
