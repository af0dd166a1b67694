/* The entries of one operation: netted per allocation and layer as they are moved, appended to the view when the
 * operation is through. Every operation that moves credits writes through here; the sums of both layers are zero. */
#include <assert.h>

#include "bank/core/ledger_impl.h"

static void journal_add (struct journal *j, char layer, int64_t account, int64_t alloc,
                         credit_micro amount)
{
    for (uint32_t i = 0; i < j->legs.count; i++) {
        struct ledger_entry *entry = j->legs.item[i];
        if (entry->layer == layer && entry->allocation_id == alloc) {
            bool over = __builtin_add_overflow (entry->amount, amount, &entry->amount);
            assert (!over);
            return;
        }
    }
    struct ledger_entry *entry = arena_new (j->view->arena, struct ledger_entry);
    *entry = (struct ledger_entry){.layer = layer,
                                   .account_id = account,
                                   .allocation_id = alloc,
                                   .amount = amount,
                                   .effective_at = j->effective_at};
    vec_push (j->view, &j->legs, entry);
}

void journal_move (struct journal *j, char layer, int64_t from_account, int64_t from_alloc,
                   int64_t to_account, int64_t to_alloc, credit_micro amount)
{
    assert (amount >= 0);
    if (amount == 0)
        return;
    journal_add (j, layer, from_account, from_alloc, -amount);
    journal_add (j, layer, to_account, to_alloc, amount);
}

void journal_close (struct journal *j)
{
    uint32_t leg = 0;
    __int128 sum[2] = {0, 0};
    for (uint32_t i = 0; i < j->legs.count; i++) {
        struct ledger_entry *entry = j->legs.item[i];
        if (entry->amount == 0)
            continue;
        entry->op_id = j->view->next.op;
        entry->leg = leg++;
        sum[entry->layer == 'H'] += entry->amount;
        vec_push (j->view, &j->view->entries, entry);
    }
    assert (sum[0] == 0 && sum[1] == 0);
}
