/* record: learns how far intervals must be stretched, and sums up how answers held. estimator.c
 * corrects by it, the daemon's forecast and the simulator report from it. It scores an answer
 * against what happened only, and learns nothing from one that was certain. */
#include "local/estimate/record.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- control ------------------------------------------------------------------------------ */

/* A raw interval is never taken for narrower than this on either side: there must be something to
 * stretch. */
static const double least_us = 30. * US_PER_S;

static const double missing[2] = {.25, .025}; /* on each side */
static const double step[2] = {.06, .15};

enum { STRETCH_MAX = 12 };

void control_init (struct control *c)
{
    memset (c, 0, sizeof *c);
    for (int g = 0; g < CONTROL_GROUPS; g++) { /* wide at first: what draws do not know is much */
        c->group[g].low[1] = .5;
        c->group[g].high[1] = 1;
    }
}

/* At once in every draw; up to 10 minutes, an hour, four, sixteen, more. */
static uint32_t group_of (const struct estimate *raw)
{
    double minutes = (double)raw->median / (60. * US_PER_S);

    if (raw->high95 == 0)
        return 0;
    return minutes < 10 ? 1 : minutes < 60 ? 2 : minutes < 240 ? 3 : minutes < 960 ? 4 : 5;
}

static double distance (duration_us from, duration_us to, double median)
{
    double d = (double)(to - from), least = .02 * median + least_us;

    return d > least ? d : least;
}

static duration_us rounded (double us)
{
    return us <= 0 ? 0 : us >= (double)TIME_US_MAX / 4 ? TIME_US_MAX / 4 : (duration_us)us;
}

void control_apply (const struct control *c, const struct estimate *raw, struct estimate *out)
{
    const struct control_side *g = &c->group[group_of (raw)];
    double median = (double)raw->median;

    *out = *raw;
    if (raw->certain)
        return;
    out->low50 = rounded (median - distance (raw->low50, raw->median, median) * exp (g->low[0]));
    out->high50 = rounded (median + distance (raw->median, raw->high50, median) * exp (g->high[0]));
    out->low95 = rounded (median - distance (raw->low95, raw->median, median) * exp (g->low[1]));
    out->high95 = rounded (median + distance (raw->median, raw->high95, median) * exp (g->high[1]));
    out->low95 = out->low95 < out->low50 ? out->low95 : out->low50; /* nested */
    out->high95 = out->high95 > out->high50 ? out->high95 : out->high50;
}

static void side_learn (double *factor, bool missed, int which, double pace)
{
    *factor += pace * step[which] * (missed ? 1 - missing[which] : -missing[which]);
    *factor = *factor > STRETCH_MAX ? STRETCH_MAX : *factor < -STRETCH_MAX ? -STRETCH_MAX : *factor;
}

void control_learn (struct control *c, const struct estimate *raw, duration_us wait)
{
    struct control_side *g = &c->group[group_of (raw)];
    struct estimate said;
    double pace;

    if (raw->certain)
        return;
    control_apply (c, raw, &said);
    pace = 1 + 9. / (1 + (double)g->scored / 20); /* quick at first */
    g->scored++;
    side_learn (&g->low[0], wait < said.low50, 0, pace);
    side_learn (&g->high[0], wait > said.high50, 0, pace);
    side_learn (&g->low[1], wait < said.low95, 1, pace);
    side_learn (&g->high[1], wait > said.high95, 1, pace);
}

/* --- score -------------------------------------------------------------------------------- */

void score_add (struct score *s, const struct estimate *e, duration_us wait)
{
    double error = (double)(e->median - wait) / US_PER_S;
    bool in50 = wait >= e->low50 && wait <= e->high50, in95 = wait >= e->low95 && wait <= e->high95;

    s->count++;
    s->certain += e->certain;
    s->in50 += in50;
    s->in95 += in95;
    s->unsure_in50 += in50 && !e->certain;
    s->unsure_in95 += in95 && !e->certain;
    s->within_1m += fabs (error) <= 60;
    s->within_10m += fabs (error) <= 600;
    s->wait_s += (double)wait / US_PER_S;
    s->error_s += fabs (error);
    s->bias_s += error;
    s->width50_s += (double)(e->high50 - e->low50) / US_PER_S;
    s->width95_s += (double)(e->high95 - e->low95) / US_PER_S;
}

/* --- recent ------------------------------------------------------------------------------- */

void recent_add (struct recent *r, time_us at, const struct estimate *e, duration_us wait)
{
    r->one[r->next] = (struct recent_one){.at = at,
                                          .error_s = (float)((double)(e->median - wait) / US_PER_S),
                                          .in50 = wait >= e->low50 && wait <= e->high50,
                                          .in95 = wait >= e->low95 && wait <= e->high95,
                                          .certain = e->certain};
    r->next = (r->next + 1) % RECENT_MAX;
    r->count += r->count < RECENT_MAX;
}

static int by_size (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle (double *list, uint32_t count)
{
    if (count == 0)
        return 0;
    qsort (list, count, sizeof *list, by_size);
    return (list[(count - 1) / 2] + list[count / 2]) / 2;
}

void recent_summarise (const struct recent *r, time_us now, struct recent_summary *out)
{
    double error[RECENT_MAX], size[RECENT_MAX];
    uint32_t in50 = 0, in95 = 0;
    time_us since = now - RECENT_DAYS * 24 * 3600 * US_PER_S;

    memset (out, 0, sizeof *out);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct recent_one *one = &r->one[i];
        if (one->at < since)
            continue;
        out->count++;
        if (one->certain)
            continue;
        in50 += one->in50;
        in95 += one->in95;
        error[out->unsure] = one->error_s;
        size[out->unsure++] = fabs (one->error_s);
    }
    if (out->unsure) {
        out->coverage50 = (double)in50 / out->unsure;
        out->coverage95 = (double)in95 / out->unsure;
    }
    out->median_error_s = middle (size, out->unsure);
    out->bias_s = middle (error, out->unsure);
}

bool recent_earned (const struct recent_summary *s)
{
    enum { ENOUGH = 40 };

    return s->unsure >= ENOUGH && s->coverage95 >= .9;
}
