/* coalloc: a co-allocated part's way at the site. coalloc.c has what all of it uses, the timers and the restart, prepare.c
 * PREPARE and the bank's answer, decide.c COMMIT to RELEASE, substitute.c other nodes for a firm part whose own went down. */
#ifndef NUI_LOCAL_SVC_COALLOC_COALLOC_H
#define NUI_LOCAL_SVC_COALLOC_COALLOC_H

#include "local/svc/job.h"

void coalloc_on_answer (struct svc *svc, struct site_part *part, const struct bank_answer *answer);
void coalloc_timer_arm (struct site_part *part);
/* After a restart: what was being prepared is dropped, leases and no-shows tick on. */
int coalloc_recover (struct svc *svc, struct store_part *rec, struct err *err);
void coalloc_prepare (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_commit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_abort (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_ready (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_start (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_release (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* Writes the YES of a part as it is now into its record. Uses call_arena. */
void coalloc_answer_pack (struct site_part *part);

/* --- between its files --- */

/* Of a part's lease; 0: it is over. */
duration_us coalloc_lease_left (const struct site_part *part);
/* What every request begins with. 0: *live (may be NULL) and *old (state 0 when nothing
 * is stored) are set; the caller frees *old. Otherwise the call has been answered. */
int coalloc_part_of_call (struct svc *svc, struct rpccall *call, const Nui__Local__V1__Part *name,
                          struct site_part **live, struct store_part *old);

/* NO to a PREPARE; next: when it could be asked again with success, 0: unknown. */
void coalloc_reply_no (struct rpccall *call, const char *code, const char *text, time_us next);
/* … to all that wait for this part's answer. */
void coalloc_waiters_no (struct site_part *part, const char *code, const char *text);
/* Keeps the answer with the part, to be stored and told again. */
void coalloc_pack_answer (struct store_part *part, const Nui__Local__V1__PrepareReply *reply);
/* The stored answer again, with what is left of the lease. */
void coalloc_reply_stored (struct rpccall *call, const struct store_part *rec, duration_us left);

/* Ends a part that is not running, in this state, with this reason. Frees it. */
int coalloc_part_end (struct site_part *part, enum store_part_state state, const char *code,
                      const char *text, struct err *err);
/* The same with NO as its answer. */
void coalloc_part_refuse (struct site_part *part, const char *code, const char *text);

/* --- instead.c --- */

/* The transaction's number in the core, for a part that is or will be here. */
uint64_t instead_whose (struct svc *svc, const struct store_part *rec);
/* … of the one that a part comes instead of, as it was prepared; 0: none, or it is gone. */
uint64_t instead_known (const struct site_part *part);
/* Something is to come instead of it. */
bool instead_any (struct site_part *part);
/* The other half was started. */
bool instead_started (const struct site_part *part);
/* The part starts: the other half ends. */
int instead_end (struct site_part *part, struct err *err);

/* The core has the part's place again. */
int coalloc_rsv_regain (struct site_part *part, struct err *err);

/* --- reserve.c --- */

/* A part of a co-reservation becomes firm: a reservation takes its place. Uses call_arena. */
int reserve_firm (struct site_part *part, struct err *err);
/* START: it stands from now on by itself. */
int reserve_start (struct site_part *part, const Nui__Local__V1__StartRequest *r, struct err *err);
bool reserve_stands (const struct site_part *part);
time_us reserve_until (const struct site_part *part);
/* Its time is over. Frees the part. */
int reserve_over (struct site_part *part, struct err *err);
/* Whom it admits, as store_rsv.acl has it: whom the grid map does not have here cannot come. The caller's to free. */
char *reserve_acl (struct svc *svc, const Nui__Common__V1__Job *job, const char *owner);
/* What its user signed, as it stands. NULL with err. */
Nui__Common__V1__Job *reserve_signed (struct site_part *part, struct err *err);

/* --- change.c --- */

void coalloc_terms (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- substitute.c --- */

/* The name of a node that is down among these; NULL: none is. */
const char *substitute_lost_node (struct svc *svc, const struct allocation *a);
/* Other nodes for those of a firm part that are down, durable when it returns true. Uses call_arena. */
bool substitute_nodes (struct site_part *part);

#endif
