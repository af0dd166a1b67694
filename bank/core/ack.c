/* Numbers of a site's outbox: what has arrived without a gap is acknowledged, what came ahead of a gap is remembered.
 * Charges and releases note theirs, refused ones as well. */
#include <string.h>

#include "bank/core/ledger_impl.h"

/* Over what has no gap any more. */
static void ack_advance (struct ledger_site *site)
{
    uint32_t done = 0;
    while (done < site->ahead_count && site->ahead[done] == site->acked + 1) {
        site->acked++;
        done++;
    }
    site->ahead_count -= done;
    memmove (&site->ahead[0], &site->ahead[done], site->ahead_count * sizeof (site->ahead[0]));
}

static uint64_t ack_note (struct ledger_site *site, uint64_t sequence)
{
    if (sequence <= site->acked)
        return site->acked;
    uint32_t i = 0;
    while (i < site->ahead_count && site->ahead[i] < sequence)
        i++;
    if (i < site->ahead_count && site->ahead[i] == sequence)
        return site->acked;
    /* So far beyond a gap nothing will fill it: the site has long been told that it is there, and has no more of it
     * (site: bank_link's window is far smaller). */
    if (site->ahead_count == LEDGER_AHEAD_MAX) {
        site->acked = site->ahead[0] - 1;
        ack_advance (site);
        site->dirty = true;
        return ack_note (site, sequence);
    }
    memmove (&site->ahead[i + 1], &site->ahead[i],
             (site->ahead_count - i) * sizeof (site->ahead[0]));
    site->ahead[i] = sequence;
    site->ahead_count++;
    ack_advance (site);
    site->dirty = true;
    return site->acked;
}

uint64_t site_arrived (struct ledger_view *view, const char *name, uint64_t sequence,
                       struct ledger_outcome *out)
{
    struct ledger_site *site = ledger_site_of (view, name);
    uint64_t before = site->acked;
    uint32_t ahead = site->ahead_count;
    uint64_t acked = ack_note (site, sequence);
    out->record |= acked != before || site->ahead_count != ahead;
    return acked;
}
