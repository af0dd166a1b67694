/* reconrows: what reconciliations found, as the bank keeps it. */
#ifndef NUI_BANK_CLI_RECONROWS_H
#define NUI_BANK_CLI_RECONROWS_H

#include "bank/cli/recon.h"
#include "bank/cli/util.h"

/* The rows of a site; they live in the messages. */
struct reconrows {
    const Nui__Bank__V1__ReconRow **row; /* by what they are about, then number */
    uint32_t count;
    ProtobufCMessage **page;
    uint32_t pages;
};

/* site NULL: of all that the caller sees. Free with reconrows_free, also after an error. */
int reconrows_read (struct cli_context *ctx, const char *site, bool closed_too, struct arena *arena,
                    struct reconrows *out, struct err *err);
void reconrows_free (struct reconrows *rows);
/* The row that is open for it, or that explains it as it is; NULL: none. */
const Nui__Bank__V1__ReconRow *reconrows_of (const struct reconrows *rows,
                                             const struct recon_row *found);
/* Opens rows for what was found, and ends those of what was looked for and not found again. */
int reconrows_record (struct cli_context *ctx, const char *site, const struct recon_books *books,
                      const struct recon_row *row, uint32_t count, struct err *err);
int reconrows_close (struct cli_context *ctx, uint64_t row, uint64_t op, const char *note,
                     struct err *err);

/* nui reconcile list, own. */
int reconrows_list (struct cli_context *ctx, const char *site, bool all);
int reconrows_own (struct cli_context *ctx, const struct cli_said *said);

#endif
