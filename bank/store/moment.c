/* See moment.h. The committer asks for a moment for each batch, and whether the clock is to be believed before it takes
 * a request. */
#include "bank/store/moment.h"

/* What is believed is renewed so rarely that many small steps do not add up to a large one within an hour. */
#define RENEW_US (3600 * US_PER_S)

static time_us moment_believed (const struct moment *m, struct moment_now now)
{
    return m->wall + (now.boot - m->boot);
}

void moment_begin (struct moment *m, struct moment_now now, time_us database, time_us recorded)
{
    if (recorded > m->last)
        m->last = recorded;
    if (m->boot && moment_ahead (m, now) > 0)
        return; /* found wrong before the connection was made anew */
    bool ahead = !m->accepted && now.wall > database && now.wall - database > m->bound;
    m->wall = ahead ? database : now.wall;
    m->boot = now.boot;
}

duration_us moment_ahead (const struct moment *m, struct moment_now now)
{
    time_us believed = moment_believed (m, now);
    return m->boot && now.wall > believed && now.wall - believed > m->bound ? now.wall - believed
                                                                            : 0;
}

duration_us moment_behind (const struct moment *m, struct moment_now now)
{
    return m->last > now.wall && m->last - now.wall > m->bound ? m->last - now.wall : 0;
}

time_us moment_is (const struct moment *m, struct moment_now now)
{
    return moment_ahead (m, now) > 0 ? moment_believed (m, now) : now.wall;
}

time_us moment_next (struct moment *m, struct moment_now now)
{
    time_us t = moment_is (m, now);
    if (moment_ahead (m, now) == 0 && now.boot - m->boot > RENEW_US)
        moment_accept (m, now);
    m->last = t > m->last ? t : m->last + 1;
    return m->last;
}

void moment_accept (struct moment *m, struct moment_now now)
{
    m->wall = now.wall;
    m->boot = now.boot;
}
