/* survey: exact answers from the candidate sites of a job's components, and the bank's prices.
 *
 * Queries go out in parallel; each site has query_timeout to answer. The prices of all feasible offers come from
 * one Quote, or as many as it takes (SURVEY_QUOTE_ITEMS_MAX). A co-allocated job's leaves beside its first queries,
 * for what the job's shape and the sites' last answers say; the bank is asked again after the answers where one says
 * otherwise, where more sites had to be asked, and where its reasons may be those of a site that will never run it. An
 * ordinary one's leaves after the last answer. `done` gets the survey, owns it from then on, and is called exactly
 * once, never inside survey_start. */
#ifndef NUI_META_PLACE_SURVEY_H
#define NUI_META_PLACE_SURVEY_H

#include "meta/job/job.h"

struct survey_offer {
    uint32_t part;
    uint32_t site;  /* index into metad->site; stable for the life of the daemon */
    uint32_t shape; /* which of the part's sizes */
    char site_name[COALLOC_NAME_MAX];
    bool answered;
    bool feasible;
    struct coalloc_reason reason;
    struct choose_interval *starts;
    uint32_t start_count;
    time_us start_estimate;              /* by limits; 0: none */
    Nui__Common__V1__Forecast *forecast; /* owned; NULL: the site gave none */
    credit_micro price_least;            /* below which the site refuses it */
    uint32_t procs;
    uint32_t nodes;
    char machine[COALLOC_NAME_MAX]; /* for the bank; "": none. Until it has answered, as it said
                                       last */
    /* From the bank. */
    bool quoted;  /* was asked for in the last Quote */
    bool differs; /* and with other procs or machine than its answer has */
    bool priced;
    credit_micro price;
    bool funded;
    char account[COALLOC_NAME_MAX];
};

struct survey {
    struct metad *metad;
    uint32_t part_count;
    struct survey_offer *offer;
    uint32_t offer_count, offer_cap;
    bool priced;       /* the bank answered */
    bool group_quoted; /* one site per component: the group was quoted as a whole */
    bool group_funded;
    credit_micro group_price;
    struct coalloc_reason bank; /* why it did not, or why nothing is funded (each account) */
    bool bank_refused;          /* it answered with a refusal, not with silence */
    /* Inside. */
    struct choose_set *set; /* what sites have said of several parts at once (together.c) */
    uint32_t set_count, rounds;
    struct survey_pair *rest; /* candidates that were not asked yet, part by part */
    uint32_t rest_count;
    uint32_t wave;             /* how often some were asked */
    EnvelopeMessage *envelope; /* copy */
    JobMessage *job;           /* copy */
    uint32_t outstanding;      /* Queries */
    uint32_t quoting;          /* Quotes under way */
    uint8_t replaces[16];      /* the transaction that it is to come instead of; zeros: none */
    uint64_t asker;            /* number of the job that it is for; 0: none yet */
    void (*done) (void *arg, struct survey *survey);
    void *arg;
};

/* Whom to ask for what. */
struct survey_pair {
    uint32_t part;
    uint32_t site;
    uint32_t shape;
};

/* Asks of each part the first of its candidates: so many sites as SURVEY_SHORTLIST, or
 * SURVEY_SHORTLIST_PRICE where the price matters first, of which reports say nothing; one more for each
 * other part, so that all find a place. While more than SURVEY_MANY wait for answers it is half of them:
 * questions cost about as much as a placement's other calls.
 * The next ones are asked, four times as many each time, where none of them can run the part, and where an ordinary
 * job's best answer lies SURVEY_WORTH behind what the next one has reported, until SURVEY_ASKED_MAX or more
 * have been asked (SURVEY_SHORTLIST while many wait). wave: how many such times to begin after, where asking
 * fewer has not led to a choice. */
/* How often sites are asked about sets of parts for one choice; and of how many such questions one survey keeps the answers. */
enum { SURVEY_ROUNDS = 32, SURVEY_SETS_MAX = 256 };
#define SURVEY_WORTH (10 * US_PER_S) /* what a site knows changes while its report is on its way */
enum { SURVEY_SHORTLIST = 8, SURVEY_SHORTLIST_PRICE = 64, SURVEY_MANY = 32, SURVEY_ASKED_MAX = 32 };
enum { SURVEY_QUOTE_ITEMS_MAX = 256 }; /* that the bank prices in one call */
static_assert ((int)COALLOC_PARTS_MAX <= (int)SURVEY_QUOTE_ITEMS_MAX,
               "a group is quoted as a whole");
void survey_start (struct metad *metad, const EnvelopeMessage *envelope, const JobMessage *job,
                   const struct survey_pair *pair, uint32_t pair_count, uint32_t wave,
                   void (*done) (void *arg, struct survey *survey), void *arg);
/* The same of a co-allocated job that is firm with that transaction, and would come instead of it: what it has is not in
 * its way. */
void survey_start_instead (struct metad *metad, const EnvelopeMessage *envelope,
                           const JobMessage *job, const struct survey_pair *pair,
                           uint32_t pair_count, uint32_t wave, const uint8_t replaces[16],
                           void (*done) (void *arg, struct survey *survey), void *arg);
/* What a QUERY says of that. */
ProtobufCBinaryData survey_replaces (const struct survey *survey);
void survey_destroy (struct survey *survey); /* NULL is a no-op */
/* Some site that was asked can run some part, or has not answered. */
bool survey_may_run (const struct survey *survey);

/* All parts, in all sizes, with the configured sites that are allowed, worth asking and, by their
 * reports, large enough: part by part, the SURVEY_RANKED (for each size) that by their reports complete it first come
 * first, the others in no order. In the arena. */
enum { SURVEY_RANKED = 128 };
uint32_t survey_candidates (struct metad *metad, const JobMessage *job,
                            const char (*refused_by)[COALLOC_NAME_MAX], uint32_t refused_count,
                            struct arena *arena, struct survey_pair **out);

/* What the answers mean for part p. */
enum survey_verdict {
    SURVEY_POSSIBLE, /* some site could run it */
    SURVEY_NEVER,    /* every allowed site has said that it never can */
    SURVEY_SILENT,   /* a site that might did not answer */
};
enum survey_verdict survey_part (const struct survey *survey, uint32_t part,
                                 struct coalloc_reason *reason);
/* Every configured site that is allowed has answered for the part, with a price, or can never run it. */
bool survey_complete (const struct survey *survey, uint32_t part);
/* Why an allowed site was not asked for the part; false: it was, or is not allowed. */
bool survey_unasked (const struct survey *survey, uint32_t part, uint32_t site,
                     struct coalloc_reason *reason);
/* Fills a problem over the feasible, priced offers (problem->offer and ->part in the arena; intervals stay
 * the survey's, or are those in which licences of the grid are there, too). index_out maps its offers to the survey's. */
void survey_problem (const struct survey *survey, struct arena *arena,
                     struct choose_problem *problem, uint32_t **index_out);

/* ---- together.c: what fits a site alone need not fit beside other parts there */

/* Asks the sites that have several parts in one of these choices whether they fit together; `done` is called, as by
 * survey_start, when all have answered. False: nothing is in doubt, or enough was asked; done is not called.
 * lenient: a site that has reported so much free is believed for a start at once. */
struct survey_choice {
    const struct choose_problem *problem;
    struct choose_result result;
};
bool survey_together (struct survey *survey, const struct survey_choice *choice, uint32_t count,
                      bool lenient, void (*done) (void *arg, struct survey *survey), void *arg);
/* Whether that choice is as good as the sites' words. */
bool survey_sure (const struct survey_choice *choice);
/* Parts of the job that can stand for each other have the same number above 0. In the arena. */
uint32_t *survey_kinds (const JobMessage *job, struct arena *arena);
void survey_sets_free (struct survey *survey);

/* "account a: reason (short by 12.5); fallback b: …" */
void funding_text (const Nui__Bank__V1__QuoteReply *reply, struct coalloc_reason *out);

/* When an ordinary job would start by this answer, not before its not_before; 0: not known. */
time_us survey_start_of (const struct survey_offer *offer, time_us not_before);

/* When it is expected to, by the site's forecast and its record; survey_start_of where there is none. */
time_us survey_expected_of (const struct survey *survey, const struct survey_offer *offer,
                            time_us not_before);

/* One line of a Quote for this offer. */
Nui__Bank__V1__PriceItem *price_item (const JobMessage *job, const struct survey_offer *offer,
                                      struct arena *arena);

/* ---- ranking.c: what survey_candidates knows of sites by their reports, and keeps between jobs of the same kind */

/* When an ordinary job would be complete there by the site's report, begun no sooner than now and its own
 * not_before; TIME_US_MAX: the report says nothing of its size. */
time_us ranking_completion (const struct metad *metad, const JobMessage *job,
                            const struct survey_pair *pair);

extern const struct metad_part ranking_part;

/* ---- answers.c: what sites said of a job when they were asked last, kept for nui status: why it does not start sooner,
 * there and elsewhere */

/* Into the job's parts, which are dirty then (job_save). What sites that were not asked this time said
 * before stays. */
void answers_take (struct gridjob *job, const struct survey *survey);
/* Those that are at hand from its Submit are too old by now. */
void answers_forget (struct gridjob *job);

extern const struct metad_part answers_part;

#endif
