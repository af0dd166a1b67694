/* coalloc_i: what the files of the state machine share.
 *
 *   coalloc.c         records, names; the step and what it hears of from elsewhere (reports, cancel, silence)
 *   coalloc_step.c    requests and their repetition; ends, tries, undo
 *   coalloc_slot.c    QUERY, CHOOSE, PREPARE, DECIDE
 *   coalloc_start.c   COMMIT, READY, START
 *   coalloc_repair.c  one component elsewhere, while the others stay firm
 *   coalloc_time.c    deadlines, wake-ups, recovery */
#ifndef NUI_META_CORE_COALLOC_I_H
#define NUI_META_CORE_COALLOC_I_H

#include "meta/core/coalloc.h"

struct step {
    struct coalloc_record *record;
    struct coalloc_event *event;
    const struct coalloc_now *now;
    struct coalloc_actions *actions;
};

/* coalloc_step.c */
void step_reason (struct coalloc_reason *reason, const char *code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
void step_act (struct step *s, enum coalloc_action_kind kind, uint32_t part);
duration_us step_offset_min (const struct coalloc_record *record);
time_us step_slot_first (const struct coalloc_record *record); /* when the first part starts */
bool step_all_in (const struct coalloc_record *record, enum part_state state);
bool step_any_in (const struct coalloc_record *record, enum part_state state);
/* The request that a part in this state waits to see answered; 0: none. */
enum coalloc_action_kind step_pending (const struct coalloc_record *record,
                                       const struct coalloc_part *part);
/* Puts a part into a state and sends the request that belongs to it. */
void step_enter (struct step *s, uint32_t p, enum part_state state);
void step_later (struct step *s, struct coalloc_part *part);
void step_end (struct step *s, enum coalloc_outcome outcome);
void step_query (struct step *s);
void step_wait (struct step *s, duration_us wait);
/* Another try at the whole group, unless the attempts are used up. */
void step_retry (struct step *s);
void step_undo (struct step *s, enum coalloc_outcome outcome);
void step_undo_finish (struct step *s);
void step_on_aborted (struct step *s, struct coalloc_part *part);
void step_on_released (struct step *s, struct coalloc_part *part);

/* coalloc_slot.c */
void step_decide (struct step *s, enum decision proposal);
/* What a refusal says of the site feeds the next CHOOSE; 0: not there at all. */
void step_hint (struct coalloc_part *part, time_us next_feasible);
/* This part is where that offer is, as one more attempt. */
void step_place (struct step *s, struct coalloc_part *part, const struct choose_offer *offer,
                 uint32_t attempt);
/* The bound that the part's last refusal puts on this offer. */
void step_hinted (const struct step *s, struct choose_offer *offer);
void step_on_queried (struct step *s);
void step_on_prepared (struct step *s, struct coalloc_part *part);
void step_on_decided (struct step *s);
bool step_overdue (const struct step *s, const struct coalloc_part *part);
void step_gave_up (struct step *s, struct coalloc_part *part);

/* coalloc_start.c */
void step_firm_check (struct step *s);       /* goes on when every part is firm */
time_us step_barrier (const struct step *s); /* when it opens */
/* How long until firm parts are looked after again: half of what is left until the barrier opens. */
duration_us step_look (const struct step *s);
void step_on_committed (struct step *s, struct coalloc_part *part);
void step_on_readied (struct step *s, struct coalloc_part *part);
void step_on_started (struct step *s, struct coalloc_part *part);
void step_live (struct step *s);

/* coalloc_repair.c; record->reason has been set. */
/* Nothing is held for that part any more: another site is sought; where that cannot be, all begin anew. */
void step_repair (struct step *s, struct coalloc_part *part);
/* Its site holds it, and cannot start it: another is sought; where there is none it stays. */
void step_doubt (struct step *s, struct coalloc_part *part);
void step_repair_queried (struct step *s);
void step_repair_decided (struct step *s);
void step_repair_released (struct step *s, struct coalloc_part *part);
void step_repair_recover (struct step *s);

/* coalloc_time.c */
bool step_deadlines (struct step *s);
void step_resend (struct step *s);
void step_wake (struct step *s);
void step_on_recover (struct step *s);

#endif
