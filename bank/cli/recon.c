/* recon: sorts both sides by job, run and hold, walks them in pairs, and names each difference
 * with its remedy. nui reconcile (reconcile.c) calls it. It asks nobody and changes nothing:
 * what it cannot tell apart gets a row without a remedy, never a guess. */
#include "bank/cli/recon.h"

#include <stdlib.h>
#include <string.h>

enum { TOLERANCE_S = 2 }; /* Slurm counts whole seconds, and sees ends by itself */

const char *recon_class_name (enum recon_class kind)
{
    static const char *const name[] = {
        "MISSING_AT_BANK", "MISSING_AT_SITE", "AMOUNT_DIFF",  "LATE",
        "DUPLICATE",       "STALE_HOLD",      "RATE_DIFF",    "EXPIRED_USE",
        "BY_HAND",         "UNSEEN",          "NOT_IN_SLURM", "SLURM_DIFF"};
    return name[kind];
}

const char *recon_remedy_name (enum recon_remedy remedy)
{
    static const char *const name[] = {"decide", "wait", "charge", "release", "refund"};
    return name[remedy];
}

/* --- keys ------------------------------------------------------------------------------------- */

static int key_cmp (const char *job_a, const char *component_a, uint32_t inc_a, const char *job_b,
                    const char *component_b, uint32_t inc_b)
{
    int c = strcmp (job_a, job_b);
    c = c ? c : strcmp (component_a, component_b);
    return c ? c : (inc_a > inc_b) - (inc_a < inc_b);
}

static int run_job_cmp (const struct recon_run *r, const struct recon_job *j)
{
    const Nui__Bank__V1__ChargeRequest *c = r->m->charge;
    return key_cmp (c->site_job_id, c->component, c->incarnation, j->m->site_job_id,
                    j->m->component, j->m->incarnation);
}

static int by_run (const void *a, const void *b)
{
    const Nui__Bank__V1__ChargeRequest *x = ((const struct recon_run *)a)->m->charge,
                                       *y = ((const struct recon_run *)b)->m->charge;
    return key_cmp (x->site_job_id, x->component, x->incarnation, y->site_job_id, y->component,
                    y->incarnation);
}

static int by_job (const void *a, const void *b)
{
    const Nui__Bank__V1__JobRecord *x = ((const struct recon_job *)a)->m,
                                   *y = ((const struct recon_job *)b)->m;
    return key_cmp (x->site_job_id, x->component, x->incarnation, y->site_job_id, y->component,
                    y->incarnation);
}

static void books_sort (struct recon_books *b)
{
    qsort (b->run, b->run_count, sizeof (*b->run), by_run);
    qsort (b->job, b->job_count, sizeof (*b->job), by_job);
}

static const struct recon_run *run_of (const struct recon_books *b, const char *job,
                                       const char *component, uint32_t incarnation)
{
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Local__V1__Run run = NUI__LOCAL__V1__RUN__INIT;
    struct recon_run key = {.m = &run};
    run.charge = &charge;
    charge.site_job_id = (char *)(uintptr_t)job;
    charge.component = (char *)(uintptr_t)component;
    charge.incarnation = incarnation;
    return b->run_count ? bsearch (&key, b->run, b->run_count, sizeof (*b->run), by_run) : NULL;
}

static const struct recon_job *job_of_run (const struct recon_books *b, const struct recon_run *r)
{
    Nui__Bank__V1__JobRecord record = NUI__BANK__V1__JOB_RECORD__INIT;
    struct recon_job key = {.m = &record};
    record.site_job_id = r->m->charge->site_job_id;
    record.component = r->m->charge->component;
    record.incarnation = r->m->charge->incarnation;
    return b->job_count ? bsearch (&key, b->job, b->job_count, sizeof (*b->job), by_job) : NULL;
}

/* Calls fn for each pair; one side may be NULL. */
static void pairs (struct recon_books *b, void *arg,
                   void (*fn) (void *arg, const struct recon_run *r, const struct recon_job *j))
{
    uint32_t i = 0, k = 0;
    while (i < b->run_count || k < b->job_count) {
        int c = i == b->run_count   ? 1
                : k == b->job_count ? -1
                                    : run_job_cmp (&b->run[i], &b->job[k]);
        fn (arg, c <= 0 ? &b->run[i] : NULL, c >= 0 ? &b->job[k] : NULL);
        i += c <= 0;
        k += c >= 0;
    }
}

/* --- who is on one side only ------------------------------------------------------------------ */

struct strangers {
    const char **bank, **site;
    uint32_t bank_count, site_count;
};

static void stranger_add (const char **list, uint32_t *count, const char *job)
{
    if (*count == 0 || strcmp (list[*count - 1], job) != 0) /* they come in order */
        list[(*count)++] = job;
}

static void on_stranger (void *arg, const struct recon_run *r, const struct recon_job *j)
{
    struct strangers *s = arg;
    if (!j && r->m->message)
        stranger_add (s->bank, &s->bank_count, r->m->charge->site_job_id);
    if (!r)
        stranger_add (s->site, &s->site_count, j->m->site_job_id);
}

uint32_t recon_strangers (struct recon_books *books, const char ***at_bank_out,
                          const char ***at_site_out, uint32_t *at_site_count_out)
{
    struct strangers s = {.bank = arena_array (books->arena, books->run_count, sizeof (*s.bank)),
                          .site = arena_array (books->arena, books->job_count, sizeof (*s.site))};
    books_sort (books);
    pairs (books, &s, on_stranger);
    *at_bank_out = s.bank;
    *at_site_out = s.site;
    *at_site_count_out = s.site_count;
    return s.bank_count;
}

/* --- rows ------------------------------------------------------------------------------------- */

struct comparing {
    struct recon_books *b;
    struct recon_row *row;
    uint32_t count, cap;
};

static int64_t use_us (uint64_t procs, int64_t start, int64_t end)
{
    int64_t us;
    if (end <= start || __builtin_mul_overflow ((int64_t)procs, end - start, &us))
        return 0;
    return us;
}

static int64_t run_use (const struct recon_run *r)
{
    return use_us (r->m->charge->procs, r->m->charge->start_us, r->m->charge->end_us);
}

static struct recon_row *row_add (struct comparing *c, enum recon_class kind,
                                  enum recon_remedy remedy, const char *text)
{
    if (c->count == c->cap) {
        uint32_t cap = c->cap * 2 + 64;
        struct recon_row *more = arena_array (c->b->arena, cap, sizeof (*more));
        if (c->count)
            memcpy (more, c->row, c->count * sizeof (*more));
        c->row = more;
        c->cap = cap;
    }
    struct recon_row *row = &c->row[c->count++];
    *row = (struct recon_row){.kind = kind,
                              .remedy = remedy,
                              .text = text,
                              .site_job = "",
                              .component = "",
                              .user = "",
                              .account = "",
                              .hold_id = "",
                              .site_ps_us = -1,
                              .bank_ps_us = -1};
    return row;
}

/* What either side says of the job; the bank's word where both do. */
static void row_fill (struct recon_row *row, const struct recon_run *r, const struct recon_job *j)
{
    if (r) {
        const Nui__Bank__V1__ChargeRequest *c = r->m->charge;
        row->run = r;
        row->site_job = c->site_job_id;
        row->component = c->component;
        row->incarnation = c->incarnation;
        row->user = c->claim ? c->claim->identity : "";
        row->account = c->claim ? c->claim->account : "";
        row->hold_id = c->hold_id;
        row->since = c->end_us;
        row->site_ps_us = run_use (r);
    }
    if (j) {
        row->site_job = j->m->site_job_id;
        row->component = j->m->component;
        row->incarnation = j->m->incarnation;
        row->user = j->m->user;
        row->account = j->m->account;
        row->hold_id = j->m->hold_id;
        row->charge_op = j->m->op_id;
        row->since = r ? row->since : j->m->end_us;
        row->bank_ps_us = use_us (j->m->procs, j->m->start_us, j->m->end_us);
        row->amount = j->m->charged_micro - j->m->refunded_micro;
    }
}

static bool on_its_way (const struct recon_run *r)
{
    return r->m->message && !r->m->answered && !*r->m->refused;
}

/* A dead letter: the operator's charge is for the same use, and whoever makes it sees to the reason. */
static const char *refusal (struct comparing *c, const struct recon_run *r)
{
    return arena_printf (c->b->arena, "the bank refused its charge: %s", r->m->refused);
}

static void run_alone (struct comparing *c, const struct recon_run *r)
{
    bool waits = on_its_way (r);
    bool nobody = strcmp (r->m->untold, "NobodyToCharge") == 0;
    if (!nobody && !r->m->message)
        return; /* not charged by the site's configuration */
    row_fill (row_add (c, RECON_MISSING_AT_BANK,
                       waits    ? RECON_WAIT
                       : nobody ? RECON_DECIDE
                                : RECON_CHARGE,
                       waits            ? "its charge is in the site's outbox"
                       : *r->m->refused ? refusal (c, r)
                       : nobody         ? "the site knows nobody to charge for it: nui charge"
                                : "the bank had acknowledged its charge and has it no more"),
              r, NULL);
}

static const char *difference (struct comparing *c, const struct recon_run *r,
                               const struct recon_job *j)
{
    const Nui__Bank__V1__ChargeRequest *s = r->m->charge;
    char told[QUANTITY_TEXT_MAX], has[QUANTITY_TEXT_MAX];
    if (s->procs != j->m->procs)
        return arena_printf (c->b->arena, "processors: %llu at the site, %llu at the bank",
                             (unsigned long long)s->procs, (unsigned long long)j->m->procs);
    if (s->start_us != j->m->start_us || s->end_us != j->m->end_us)
        return arena_printf (c->b->arena, "time: %s at the site, %s at the bank",
                             credit_format (s->end_us - s->start_us, told),
                             credit_format (j->m->end_us - j->m->start_us, has));
    if (r->m->answered && r->m->charged_micro != j->m->charged_micro)
        return arena_printf (c->b->arena, "amount: the site was told %s, the bank has %s",
                             credit_format (r->m->charged_micro, told),
                             credit_format (j->m->charged_micro, has));
    return NULL;
}

static void both (struct comparing *c, const struct recon_run *r, const struct recon_job *j)
{
    const char *text;
    if (!j->m->final)
        row_fill (row_add (c, RECON_AMOUNT_DIFF, on_its_way (r) ? RECON_WAIT : RECON_CHARGE,
                           on_its_way (r)   ? "its last charge is in the site's outbox"
                           : *r->m->refused ? refusal (c, r)
                                            : "its last charge is not at the bank"),
                  r, j);
    else if ((text = difference (c, r, j)))
        row_fill (row_add (c, RECON_AMOUNT_DIFF, RECON_DECIDE, text), r, j);
}

/* What was given back as a whole. */
static bool settled (const struct recon_job *j)
{
    return j->m->charged_micro > 0 && j->m->refunded_micro == j->m->charged_micro;
}

/* What the bank's record alone says. */
static void job_checks (struct comparing *c, const struct recon_run *r, const struct recon_job *j)
{
    struct arena *arena = c->b->arena;
    duration_us took = j->m->recorded_us - j->m->end_us;
    char text[QUANTITY_TEXT_MAX];
    if (took > c->b->late)
        row_fill (row_add (c, RECON_LATE, RECON_DECIDE,
                           arena_printf (arena, "recorded %s after its end",
                                         duration_format (took, text))),
                  r, j);
    if (*j->m->by_hand && !settled (j))
        row_fill (
            row_add (c, RECON_BY_HAND, RECON_DECIDE,
                     arena_printf (arena,
                                   r ? "charged by hand by %s"
                                     : "charged by hand by %s, and the site has no record of it",
                                   j->m->by_hand)),
            r, j);
    if (j->m->rate_version != j->m->rate_due)
        row_fill (row_add (c, RECON_RATE_DIFF, RECON_DECIDE,
                           arena_printf (arena, "priced with rate version %u, due was %u",
                                         j->m->rate_version, j->m->rate_due)),
                  r, j);
    if (j->m->expired_use)
        row_fill (row_add (c, RECON_EXPIRED_USE, RECON_DECIDE,
                           "an allocation paid that had ended before it began"),
                  r, j);
}

static void on_pair (void *arg, const struct recon_run *r, const struct recon_job *j)
{
    struct comparing *c = arg;
    if ((!r || r->outside) && (!j || j->outside))
        return;
    if (!j)
        run_alone (c, r);
    else if (r)
        both (c, r, j);
    if (j && !j->outside)
        job_checks (c, r, j);
}

/* --- charged, and the site has nothing ---------------------------------------------------------- */

static const char *name_of (const struct recon_job *j)
{
    return *j->m->grid_job_id ? j->m->grid_job_id : j->m->site_job_id;
}

static int by_name_and_time (const void *a, const void *b)
{
    const struct recon_job *x = *(const struct recon_job *const *)a,
                           *y = *(const struct recon_job *const *)b;
    int c = strcmp (name_of (x), name_of (y));
    c = c ? c : strcmp (x->m->component, y->m->component);
    c = c ? c : (x->m->start_us > y->m->start_us) - (x->m->start_us < y->m->start_us);
    return c ? c : (x->m->number > y->m->number) - (x->m->number < y->m->number);
}

static bool overlap (const struct recon_job *a, const struct recon_job *b)
{
    return strcmp (name_of (a), name_of (b)) == 0 &&
           strcmp (a->m->component, b->m->component) == 0 && a->m->start_us < b->m->end_us &&
           b->m->start_us < a->m->end_us;
}

static const struct recon_run *run_of_job (const struct recon_books *b, const struct recon_job *j)
{
    return run_of (b, j->m->site_job_id, j->m->component, j->m->incarnation);
}

static void job_alone (struct comparing *c, const struct recon_job *j, const struct recon_job *twin)
{
    const char *text;
    enum recon_remedy remedy = RECON_DECIDE;
    if (twin) {
        bool whole = j->m->charges == 1 && j->m->refunded_micro == 0 && j->m->charged_micro > 0;
        text = arena_printf (c->b->arena, "%s incarnation %u was charged for the same time",
                             twin->m->site_job_id, twin->m->incarnation);
        remedy = whole ? RECON_REFUND : RECON_DECIDE;
    } else if (!c->b->first || j->m->end_us < c->b->first) {
        text = "the site's records begin later";
    } else {
        text = "the site has no record of it";
    }
    row_fill (row_add (c, twin ? RECON_DUPLICATE : RECON_MISSING_AT_SITE, remedy, text), NULL, j);
}

/* Those without a run: of a job that has another one for the same time, charged twice. What was charged by hand has
 * its row. */
static void jobs_alone (struct comparing *c)
{
    struct recon_books *b = c->b;
    const struct recon_job **list = arena_array (b->arena, b->job_count, sizeof (*list));
    for (uint32_t i = 0; i < b->job_count; i++)
        list[i] = &b->job[i];
    if (b->job_count)
        qsort (list, b->job_count, sizeof (*list), by_name_and_time);
    for (uint32_t i = 0; i < b->job_count; i++) {
        const struct recon_job *j = list[i], *twin = NULL;
        if (j->outside || run_of_job (b, j) || settled (j))
            continue;
        for (uint32_t k = i; k-- > 0 && !twin && strcmp (name_of (list[k]), name_of (j)) == 0;)
            twin = overlap (list[k], j) && run_of_job (b, list[k]) ? list[k] : NULL;
        for (uint32_t k = i + 1; k < b->job_count && !twin && overlap (list[k], j); k++)
            twin = run_of_job (b, list[k]) ? list[k] : NULL;
        if (twin || !*j->m->by_hand)
            job_alone (c, j, twin);
    }
}

/* --- holds ------------------------------------------------------------------------------------ */

static int by_open (const void *a, const void *b)
{
    const Nui__Local__V1__OpenRun *x = *(Nui__Local__V1__OpenRun *const *)a,
                                  *y = *(Nui__Local__V1__OpenRun *const *)b;
    return key_cmp (x->site_job_id, x->component, x->incarnation, y->site_job_id, y->component,
                    y->incarnation);
}

static int by_hold_id (const void *a, const void *b)
{
    return strcmp ((*(Nui__Local__V1__OpenRun *const *)a)->hold_id,
                   (*(Nui__Local__V1__OpenRun *const *)b)->hold_id);
}

/* Its last charge will close it: one that is on its way, or that a row of its own asks for. */
static bool will_be_settled (const struct recon_books *b, const struct recon_run *r)
{
    const struct recon_job *j = job_of_run (b, r);
    return r->m->message && (!j || !j->m->final);
}

static void holds_compare (struct comparing *c)
{
    struct recon_books *b = c->b;
    size_t n = b->open_count;
    Nui__Local__V1__OpenRun **job = arena_array (b->arena, n + 1, sizeof (*job)),
                            **id = arena_array (b->arena, n + 1, sizeof (*id));
    for (size_t i = 0; i < n; i++)
        job[i] = id[i] = b->open[i];
    qsort (job, n, sizeof (*job), by_open);
    qsort (id, n, sizeof (*id), by_hold_id);
    for (size_t i = 0; i < b->hold_count; i++) {
        const Nui__Bank__V1__HoldItem *h = b->hold[i];
        Nui__Local__V1__OpenRun key = NUI__LOCAL__V1__OPEN_RUN__INIT, *k = &key;
        key.site_job_id = h->site_job_id;
        key.component = h->component;
        key.incarnation = h->incarnation;
        key.hold_id = h->hold_id;
        const struct recon_run *r = run_of (b, h->site_job_id, h->component, h->incarnation);
        if (bsearch (&k, job, n, sizeof (*job), by_open) ||
            bsearch (&k, id, n, sizeof (*id), by_hold_id) ||
            (r ? will_be_settled (b, r) : h->expires_us > b->now))
            continue; /* it runs, is being given back, or may still come */
        struct recon_row *row =
            row_add (c, RECON_STALE_HOLD, RECON_RELEASE,
                     r ? "its job has ended" : "it has expired, and the site has no such job");
        row_fill (row, r, NULL);
        row->site_job = h->site_job_id;
        row->component = h->component;
        row->incarnation = h->incarnation;
        row->user = h->user;
        row->account = h->account;
        row->hold_id = h->hold_id;
        row->since = r ? row->since : h->expires_us;
        row->amount = h->left_micro;
    }
}

/* --- Slurm ------------------------------------------------------------------------------------ */

static int by_rm (const void *a, const void *b)
{
    const struct recon_run *x = *(const struct recon_run *const *)a,
                           *y = *(const struct recon_run *const *)b;
    int c = strcmp (x->m->rm_id, y->m->rm_id);
    return c ? c
             : (x->m->charge->start_us > y->m->charge->start_us) -
                   (x->m->charge->start_us < y->m->charge->start_us);
}

/* The run of that name for that time: names come round again, and a requeued job has several. */
static uint32_t run_of_slurm (const struct recon_run **list, uint32_t count,
                              const struct sacct_job *s)
{
    const time_us slack = TOLERANCE_S * US_PER_S;
    time_us start = s->start ? s->start : s->end - s->elapsed;
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (strcmp (list[mid]->m->rm_id, s->id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < count && strcmp (list[low]->m->rm_id, s->id) == 0; low++) {
        const Nui__Bank__V1__ChargeRequest *c = list[low]->m->charge;
        if (c->start_us <= s->end + slack && start <= c->end_us + slack)
            return low;
    }
    return count;
}

static void slurm_unseen (struct comparing *c, const struct sacct_job *s)
{
    struct recon_row *row = row_add (c, RECON_UNSEEN, RECON_DECIDE,
                                     arena_printf (c->b->arena, "Slurm ran it (%s): nui charge",
                                                   *s->state ? s->state : "ended"));
    int64_t us;
    row->site_job = s->id;
    row->user = s->user;
    row->account = s->account;
    row->since = s->end;
    row->site_ps_us = __builtin_mul_overflow (s->procs, s->elapsed, &us) ? 0 : us;
}

static void slurm_differs (struct comparing *c, const struct recon_run *r,
                           const struct sacct_job *s)
{
    const Nui__Bank__V1__ChargeRequest *q = r->m->charge;
    duration_us run = q->end_us - q->start_us, apart = run - s->elapsed;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (run == 0 || ((int64_t)q->procs == s->procs && apart <= TOLERANCE_S * US_PER_S &&
                     apart >= -TOLERANCE_S * US_PER_S))
        return; /* given away, or the same */
    row_fill (row_add (c, RECON_SLURM_DIFF, RECON_DECIDE,
                       arena_printf (c->b->arena,
                                     "the site has %llu processors for %s, Slurm %lld for %s",
                                     (unsigned long long)q->procs, duration_format (run, a),
                                     (long long)s->procs, duration_format (s->elapsed, b))),
              r, NULL);
}

static void slurm_compare (struct comparing *c)
{
    struct recon_books *b = c->b;
    const struct recon_run **list = arena_array (b->arena, b->run_count + 1, sizeof (*list));
    bool *met = arena_array (b->arena, b->run_count + 1, sizeof (*met));
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->run_count; i++)
        if (*b->run[i].m->rm_id)
            list[count++] = &b->run[i];
    qsort (list, count, sizeof (*list), by_rm);
    for (uint32_t i = 0; i < b->slurm_count; i++) {
        const struct sacct_job *s = &b->slurm[i];
        uint32_t at = run_of_slurm (list, count, s);
        bool within = s->end >= b->from && s->end < b->to;
        if (at < count)
            met[at] = true;
        if (at < count && !list[at]->outside)
            slurm_differs (c, list[at], s);
        else if (at == count && within && s->elapsed > 0 && s->procs > 0)
            slurm_unseen (c, s);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!met[i] && !list[i]->outside)
            row_fill (row_add (c, RECON_NOT_IN_SLURM, RECON_DECIDE,
                               arena_printf (b->arena, "Slurm has no job %s for that time",
                                             list[i]->m->rm_id)),
                      list[i], NULL);
}

static int by_class (const void *a, const void *b)
{
    const struct recon_row *x = a, *y = b;
    int c = (int)x->kind - (int)y->kind;
    c = c ? c
          : key_cmp (x->site_job, x->component, x->incarnation, y->site_job, y->component,
                     y->incarnation);
    return c ? c : strcmp (x->hold_id, y->hold_id);
}

uint32_t recon_compare (struct recon_books *books, struct recon_row **out)
{
    struct comparing c = {.b = books};
    books_sort (books);
    pairs (books, &c, on_pair);
    jobs_alone (&c);
    if (books->holds_settled)
        holds_compare (&c);
    if (books->has_slurm)
        slurm_compare (&c);
    if (c.count)
        qsort (c.row, c.count, sizeof (*c.row), by_class);
    *out = c.row;
    return c.count;
}
