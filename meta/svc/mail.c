/* Mails: who gets which, and what stands in them. hooks.c calls it; nothing is sent here. What users and sites say gets into the body
 * only, with blanks for control characters; into headers go numbers and checked addresses. */
#include "meta/svc/mail.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/base/strbuf.h"

int mail_check (const struct metad_config *config, const char *url, struct err *err)
{
    char address[MAIL_ADDRESS_MAX + 1];
    if (mailaddress_check (url, err) != 0)
        return err->code;
    mailaddress_read (url, address);
    if (!config->mail_server)
        return err_set (
            err, ERR_DENIED,
            "this grid sends no mail (MAILSERVER of nui-meta): --wait and --notify tell "
            "how a job ended");
    for (uint32_t i = 0; i < config->mail_allow_count; i++)
        if (strcasecmp (strchr (address, '@'), config->mail_allow[i]) == 0)
            return 0;
    return err_set (err, ERR_DENIED, "this grid sends no mail to %.100s (MAILALLOW)",
                    strchr (address, '@'));
}

bool mail_perhaps (const char *url)
{
    char address[MAIL_ADDRESS_MAX + 1];
    return mailaddress_read (url, address) & MAIL_PERHAPS;
}

bool mail_wants (const char *url, const struct gridjob *job, unsigned bit, bool files)
{
    char address[MAIL_ADDRESS_MAX + 1];
    unsigned events = mailaddress_read (url, address);
    bool well = job->state == NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
    struct err err;
    if (events & MAIL_PERHAPS && mail_check (job->metad->config, url, &err) != 0)
        return false;
    if (files)
        return events & (MAIL_END | MAIL_FAIL);
    if (bit == HOOK_JOB_START)
        return events & MAIL_BEGIN;
    if (bit == HOOK_JOB_RETRY)
        return events & MAIL_REQUEUE;
    return bit == HOOK_JOB_END && (events & MAIL_END || (!well && events & MAIL_FAIL));
}

static void mail_words_add (struct strbuf *out, const char *before, const char *text)
{
    if (!text || !*text)
        return;
    strbuf_puts (out, before);
    for (const char *p = text; *p; p++)
        strbuf_printf (out, "%c", iscntrl ((unsigned char)*p) ? ' ' : *p);
}

static const char *mail_member (const json_t *doc, const char *key)
{
    const char *text = json_string_value (json_object_get (doc, key));
    return text ? text : "";
}

/* "grid.42 (run-7) has ended: Failed, alpha: exit code 7, at 2026-11-26T12:00:00Z" */
static void mail_event_add (struct strbuf *out, const json_t *doc)
{
    const char *event = mail_member (doc, "event");
    size_t i;
    const json_t *part;
    strbuf_puts (out, mail_member (doc, "job"));
    if (*mail_member (doc, "name")) {
        mail_words_add (out, " (", mail_member (doc, "name"));
        strbuf_puts (out, ")");
    }
    if (strcmp (event, "JobStart") == 0)
        strbuf_puts (out, " has started");
    else if (strcmp (event, "JobRetry") == 0)
        strbuf_puts (out, " is run again");
    else if (strcmp (event, "JobStageOut") == 0)
        strbuf_puts (out, " has ended, and its files");
    else
        strbuf_printf (out, " has ended: %s", mail_member (doc, "state"));
    json_array_foreach (json_object_get (doc, "components"), i, part)
    {
        const json_t *code = json_object_get (part, "exit_code");
        mail_words_add (out, i ? "; " : ", ", mail_member (part, "site"));
        if (code)
            strbuf_printf (out, ": exit code %lld", (long long)json_integer_value (code));
    }
    mail_words_add (out, ", at ", mail_member (doc, "time"));
    mail_words_add (out, "\r\n    ", mail_member (doc, "reason"));
    strbuf_puts (out, "\r\n");
}

/* "grid.42 has ended: Failed", or how many of what. */
static void mail_subject_add (struct strbuf *out, const json_t *doc, uint32_t count)
{
    if (count > 1)
        strbuf_printf (out, "Subject: %u notices of your jobs\r\n", count);
    else
        strbuf_printf (out, "Subject: %s %s\r\n", mail_member (doc, "job"),
                       strcmp (mail_member (doc, "event"), "JobEnd") == 0
                           ? mail_member (doc, "state")
                           : mail_member (doc, "event") + 3);
}

char *mail_text (const struct metad *metad, const char *to, const char *key,
                 const struct notice_row *rows, uint32_t count, struct arena *arena)
{
    struct strbuf head = STRBUF_INIT, body = STRBUF_INIT;
    const char *from = metad->config->mail_from ? metad->config->mail_from : "nui@localhost";
    char date[64];
    time_t now = (time_t)(clock_now_us () / US_PER_S);
    struct tm tm;
    strftime (date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r (&now, &tm));
    strbuf_printf (&head, "Date: %s\r\nFrom: %s\r\nTo: %s\r\nMessage-ID: <%s@%s.nui>\r\n", date,
                   from, to, key, metad->grid);
    for (uint32_t i = 0; i < count; i++) {
        json_t *doc = json_loads (rows[i].body, 0, NULL);
        if (i == 0)
            mail_subject_add (&head, doc, count);
        mail_event_add (&body, doc);
        json_decref (doc);
    }
    strbuf_puts (&head, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                        "Content-Type: text/plain; charset=utf-8\r\n"
                        "Content-Transfer-Encoding: 8bit\r\n\r\n");
    char *out = arena_printf (arena, "%s%s", strbuf_text (&head), strbuf_text (&body));
    strbuf_free (&head);
    strbuf_free (&body);
    return out;
}
