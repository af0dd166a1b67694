/* What a job says of mail. The client makes it, the metascheduler checks it again before it takes the job; what passes here can stand
 * in a header of a mail and in a command of SMTP. */
#include "proto/job/mailaddress.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

unsigned mailaddress_event (const char *word)
{
    static const struct {
        const char *word;
        unsigned bits;
    } events[] = {{"begin", MAIL_BEGIN},     {"end", MAIL_END}, {"fail", MAIL_FAIL},
                  {"requeue", MAIL_REQUEUE}, {"all", MAIL_ALL}, {"perhaps", MAIL_PERHAPS}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strcmp (events[i].word, word) == 0)
            return events[i].bits;
    return 0;
}

bool mailaddress_is (const char *url)
{
    return strncmp (url, "mailto:", 7) == 0;
}

unsigned mailaddress_read (const char *url, char address[MAIL_ADDRESS_MAX + 1])
{
    const char *at = url + 7, *query = strstr (at, "?on=");
    unsigned events = 0;
    char words[64], *rest = words;
    snprintf (address, MAIL_ADDRESS_MAX + 1, "%.*s", query ? (int)(query - at) : (int)strlen (at),
              at);
    snprintf (words, sizeof words, "%s", query ? query + 4 : "");
    for (char *word; (word = strsep (&rest, ","));) {
        unsigned one = mailaddress_event (word);
        if (!one)
            return 0;
        events |= one;
    }
    return events;
}

int mailaddress_check (const char *url, struct err *err)
{
    char address[MAIL_ADDRESS_MAX + 1];
    if (!mailaddress_is (url) || strlen (url) > MAIL_ADDRESS_MAX ||
        !mailaddress_read (url, address))
        return err_set (err, ERR_INVALID,
                        "'%.100s': wanted an address and some of begin, end, fail, requeue, all",
                        url);
    const char *at = strchr (address, '@');
    bool fits = at && at > address && at[1] && at[1] != '.' && !strchr (at + 1, '@');
    for (const char *p = address; fits && *p; p++)
        fits = isalnum ((unsigned char)*p) ||
               (p > at ? strchr (".-", *p) != NULL : strchr (".!#$%&'*+/=^_`{|}~-@", *p) != NULL);
    return fits && address[0] != '-'
               ? 0
               : err_set (err, ERR_INVALID, "'%.100s' is no mail address", address);
}
