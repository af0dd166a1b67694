/* Leads of projects hear of their allocations, by NOTIFICATIONPROGRAM and NOTIFICATIONURL: four fifths are used, all is used, one
 * ends within a month. Every NEAR_PERIOD_S the reader finds those that nobody was told of; a message that was taken is then written
 * down as an operation, so that each is told once, whatever is killed in between: a second time only where the bank died between
 * the two, with the same key. One that could not be written down, for a database that went away say, is kept until it can. Nothing depends on when it runs. */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bank/store/fundread.h"
#include "bank/svc/notify.h"
#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

#define NEAR_CLIENT "bank:told" /* RD_NEAR names it too */
#define NEAR_MONTH (30 * 86400 * US_PER_S)
#define NEAR_AGAIN (3600 * US_PER_S)

enum { NEAR_PERIOD_S = 10 };

struct near {
    struct bank_service *svc;
    struct event *timer;
    uint32_t asked;                    /* reads, messages and operations that are under way */
    duration_us not_yet;               /* monotonic: nobody took one, so none is told before that */
    bool gone;                         /* destroyed: the last answer frees it */
    LIST_HEAD (, near_word) unwritten; /* told, and not written down yet */
};

/* One that is told, until it is written down. */
struct near_word {
    struct near *near;
    LIST_ENTRY (near_word) link; /* once it is told */
    struct ledger_request req;
    char text[];
};

static void near_free (struct near *near)
{
    struct near_word *word;
    while ((word = LIST_FIRST (&near->unwritten))) {
        LIST_REMOVE (word, link);
        free (word);
    }
    free (near);
}

static void near_settle (struct near *near)
{
    if (--near->asked == 0 && near->gone)
        near_free (near);
}

static void near_on_written (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct near_word *word = arg;
    struct near *near = word->near;
    (void)bytes, (void)len;
    char text[ERR_TEXT_MAX], why[ERR_TEXT_MAX];
    if (!near->gone)
        log_event (near->svc->log, err->code ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "notify",
                   err->code ? "not_written_down" : "leads_told", "text=%s why=%s",
                   log_quote (word->text, text, sizeof (text)),
                   log_quote (err->code ? err->text : "", why, sizeof (why)));
    if (!err->code) {
        LIST_REMOVE (word, link);
        free (word);
    }
    near_settle (near);
}

/* What has been told; counted among what is asked. */
static void near_write (struct near_word *word)
{
    struct err err = {0};
    if (committer_submit (word->near->svc->committer, &word->req, NULL, near_on_written, word,
                          &err) < 0)
        near_on_written (word, &err, NULL, 0);
}

/* notify_message's: they have heard. */
static void near_on_told (void *arg, const char *why)
{
    struct near_word *word = arg;
    struct near *near = word->near;
    if (*why) {
        near->not_yet = clock_monotonic_us () + NEAR_AGAIN;
        near_settle (near);
        free (word);
        return;
    }
    LIST_INSERT_HEAD (&near->unwritten, word, link);
    near_write (word);
}

/* Told before, though it is not written down: it is not told again. */
static bool near_told (struct near *near, const struct near_word *word)
{
    struct near_word *told;
    LIST_FOREACH (told, &near->unwritten, link)
    if (memcmp (&told->req.key, &word->req.key, sizeof (word->req.key)) == 0) {
        near->asked++;
        near_write (told);
        return true;
    }
    return false;
}

/* "phys: 80.0 % of the allocation alloc.7 (12000 credits) are used, 2400 are left" */
static struct near_word *near_word_new (struct near *near, const struct fund_near *row)
{
    char granted[QUANTITY_TEXT_MAX], left[QUANTITY_TEXT_MAX], end[QUANTITY_TEXT_MAX];
    struct near_word *word = calloc (1, sizeof (*word) + ERR_TEXT_MAX);
    if (!word)
        abort ();
    credit_format (row->granted, granted);
    credit_format (row->left, left);
    time_format_iso (row->end, end);
    if (row->what == 3)
        text_printf (word->text, ERR_TEXT_MAX,
                     "%.64s: its allocation alloc.%lld ends at %s, with %s of %s credits left",
                     row->account, (long long)row->id, end, left, granted);
    else
        text_printf (word->text, ERR_TEXT_MAX,
                     "%.64s: of its allocation alloc.%lld %s is used: %s of %s credits are left",
                     row->account, (long long)row->id, row->what == 2 ? "100 %" : "80 %",
                     row->left > 0 ? left : "0", granted);
    word->near = near;
    word->req = (struct ledger_request){.kind = LEDGER_TOLD,
                                        .client = NEAR_CLIENT,
                                        .on_behalf = NEAR_CLIENT,
                                        .told = {row->id, word->text}};
    uint64_t which = (uint64_t)row->what << 56 | (uint64_t)row->end_s;
    for (int k = 0; k < 8; k++) {
        word->req.key.b[k] = (uint8_t)((uint64_t)row->id >> (56 - 8 * k));
        word->req.key.b[8 + k] = (uint8_t)(which >> (56 - 8 * k));
    }
    return word;
}

static void near_on_rows (void *arg, const struct err *err, const struct fund_near *row,
                          uint32_t count)
{
    struct near *near = arg;
    struct err why;
    char quoted[ERR_TEXT_MAX];
    if (err->code && !near->gone)
        log_event (near->svc->log, LOG_LEVEL_WARN, "notify", "allocations_not_read", "why=%s",
                   log_quote (err->text, quoted, sizeof (quoted)));
    for (uint32_t i = 0; !err->code && !near->gone && i < count; i++) {
        struct near_word *word = near_word_new (near, &row[i]);
        char key[QUANTITY_TEXT_MAX];
        if (near_told (near, word)) {
            free (word);
            continue;
        }
        json_t *doc = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s}", "event",
                                 row[i].what == 3 ? "AllocationEnds" : "AllocationUsed", "object",
                                 row[i].account, "text", word->text, "project", row[i].project,
                                 "leads", row[i].leads, "key", uuid_format (&word->req.key, key));
        near->asked++;
        if (notify_message (near->svc->notify, doc, near_on_told, word, &why) < 0) {
            near_settle (near); /* the reader's own is still counted */
            free (word);
            break;
        }
    }
    near_settle (near);
}

static void near_on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct near *near = arg;
    struct bank_service *svc = near->svc;
    (void)fd, (void)what;
    if (near->asked || !notify_wanted (svc->notify, NOTIFY_ALLOCATION) ||
        clock_monotonic_us () < near->not_yet || !reader_is_up (svc->reader) ||
        !committer_is_up (svc->committer))
        return;
    time_us now = committer_now (svc->committer);
    near->asked++;
    fundread_near (svc->reader, now, now + NEAR_MONTH, near_on_rows, near);
}

struct near *near_create (struct bank_service *svc)
{
    struct near *near = calloc (1, sizeof (*near));
    struct timeval period = {NEAR_PERIOD_S, 0};
    if (!near)
        abort ();
    near->svc = svc;
    LIST_INIT (&near->unwritten);
    near->timer = event_new (svc->base, -1, EV_PERSIST, near_on_timer, near);
    if (!near->timer || event_add (near->timer, &period) < 0)
        abort ();
    return near;
}

void near_destroy (struct near *near)
{
    if (!near)
        return;
    event_free (near->timer);
    near->gone = true;
    if (near->asked == 0)
        near_free (near);
}
