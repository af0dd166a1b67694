/* mailaddress: a job's notification that goes by mail: mailto:ADDRESS?on=begin,end,fail. Pure. */
#ifndef NUI_JOB_MAILADDRESS_H
#define NUI_JOB_MAILADDRESS_H

#include <stdbool.h>

#include "proto/base/err.h"

enum mail_event { /* bits */
                  MAIL_BEGIN = 1,
                  MAIL_END = 2,
                  MAIL_FAIL = 4,
                  MAIL_REQUEUE = 8,
                  MAIL_ALL = 15,
                  MAIL_PERHAPS =
                      16, /* no event: a grid that sends no mail there takes the job nevertheless */
};
enum { MAIL_ADDRESS_MAX = 255 };

/* "begin" …, "all"; 0: no such word. */
unsigned mailaddress_event (const char *word);
bool mailaddress_is (const char *url);
/* ERR_INVALID: it is no address (letters, digits and .!#$%&'*+/=^_`{|}~- around one @), or says no event. */
int mailaddress_check (const char *url, struct err *err);
/* Of one that is checked: the address, and its events. */
unsigned mailaddress_read (const char *url, char address[MAIL_ADDRESS_MAX + 1]);

#endif
