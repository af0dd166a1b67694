/* said: a command line as one of the forms of its command.
 *
 * A form is a line of the synopsis, and that line is what the words are compared with:
 *
 *     "create NAME [--parent PROJECT] [--description TEXT]"
 *
 * Words in small letters must be said, words in capitals are operands, options in brackets may be given and others
 * must; "A | B" wants one of two options at least, brackets within brackets an option that only goes with the one before
 * it, and "…" repeats. Options that the line does not name are refused. The first form that fits is taken; where none
 * fits, the refusal lists them all. So synopsis, help, refusals and what is taken cannot differ. */
#ifndef NUI_CLI_SAID_H
#define NUI_CLI_SAID_H

#include "proto/cli/options.h"

struct cli_said;

struct cli_form {
    const char *words;
    /* What to do; NULL: one call of `method`, see request.h, which says what the rest means. */
    int (*run) (struct cli_context *ctx, const struct cli_said *said);
    const char *method;
    const char *fields;
    const char *sentence;
    const struct table_column *columns;
    uint32_t column_count;
};
#define CLI_COLUMNS(table) .columns = (table), .column_count = sizeof (table) / sizeof *(table)

struct cli_said {
    const struct cli_command *command;
    const struct cli_form *form;
    struct cli_operands operands; /* without the words of the form */
    uint64_t given;               /* bit by row of the command's options */
    union cli_value *values;      /* by row */
    struct arena *arena;          /* for as long as the command runs */
};

/* Runs a command that has forms. Returns enum cli_exit. */
int cli_run_forms (struct cli_context *ctx, const struct cli_command *command, int argc,
                   char **argv);
/* The synopsis: "usage: nui NAME FORM", a line for each form. */
void cli_forms_help (const struct cli_command *command, struct strbuf *out);

/* What an option said, by its long name; asserts that the table has it, of that type. Not given: the second value. */
bool said_given (const struct cli_said *said, const char *option);
const char *said_text (const struct cli_said *said, const char *option); /* NULL */
bool said_flag (const struct cli_said *said, const char *option);
int64_t said_number (const struct cli_said *said, const char *option); /* 0 */
void said_period (const struct cli_said *said,
                  struct cli_period *out); /* of from, to and period; 0: not given */
const struct cli_list *said_list (const struct cli_said *said,
                                  const char *option); /* an empty one */
const union cli_value *said_value (const struct cli_said *said, const struct cli_option *option);
/* An operand by its place; NULL: there are fewer. */
const char *said_operand (const struct cli_said *said, int at);
/* Name of an operand in the form; the last one goes on for those that repeat. In the arena. */
const char *said_operand_name (const struct cli_said *said, int at);

#endif
