/* The signal before a job's limit, as sbatch writes it. The client checks it, the metascheduler and the site check it again
 * (jobcheck), and the site makes of it what its resource manager is told. */
#include "proto/job/jobsignal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int signal_number (const char *word, size_t len)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {
        {"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    char digits[8];
    if (len > 3 && strncasecmp (word, "SIG", 3) == 0)
        word += 3, len -= 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        snprintf (digits, sizeof digits, "%d", known[i].number);
        if ((len == strlen (known[i].name) && strncasecmp (word, known[i].name, len) == 0) ||
            (len == strlen (digits) && strncmp (word, digits, len) == 0))
            return known[i].number;
    }
    return 0;
}

int jobsignal_parse (const char *text, struct jobsignal *out, struct err *err)
{
    uint64_t before = JOBSIGNAL_BEFORE_S;
    struct jobsignal wanted = {.script = strncmp (text, "B:", 2) == 0};
    const char *word = wanted.script ? text + 2 : text, *at = strchr (word, '@');
    if (*text)
        wanted.number = signal_number (word, at ? (size_t)(at - word) : strlen (word));
    if ((*text && !wanted.number) ||
        (at && uint_parse (at + 1, "seconds", 1, JOBSIGNAL_BEFORE_S_MAX, &before, err) < 0))
        return err_set (err, ERR_INVALID,
                        "signal '%.40s': wanted [B:]SIGNAL[@SECONDS], as in B:USR1@120, with HUP, "
                        "INT, TERM, USR1 or USR2 and at most %d seconds",
                        text, JOBSIGNAL_BEFORE_S_MAX);
    wanted.before = (duration_us)before * US_PER_S;
    *out = wanted;
    return 0;
}

int jobsignal_check (const char *text, duration_us walltime, struct err *err)
{
    struct jobsignal wanted;
    if (jobsignal_parse (text, &wanted, err) != 0)
        return ERR_INVALID;
    if (wanted.number && walltime > 0 && wanted.before >= walltime)
        return err_set (err, ERR_INVALID,
                        "signal '%.40s': %lld seconds before its limit the job has not begun: the "
                        "limit is %lld",
                        text, (long long)(wanted.before / US_PER_S),
                        (long long)(walltime / US_PER_S));
    return 0;
}
