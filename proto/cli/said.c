/* said: which form of its command a line is, and what its options said. Called by dispatch.c; the forms' own functions
 * and request.c read the values. It never asks a daemon. */
#include "proto/cli/said.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/arena.h"
#include "proto/cli/request.h"

enum { WORD_MAX = 128, NESTING_MAX = 4 };

/* --- reading a form ----------------------------------------------------------------------- */

/* One word of a form. */
struct form_word {
    char text[WORD_MAX];
    const struct cli_option *option; /* that it names; NULL: none */
    bool literal;                    /* must be said as it stands */
    bool repeats;
    bool or_next; /* "|" follows */
    int depth;    /* brackets that are open around it */
};

static const struct cli_option *option_named (const struct cli_option *table, const char *word)
{
    for (const struct cli_option *o = table; o && !cli_option_ends (o); o++)
        if (word[1] == '-' ? o->name && strcmp (o->name, word + 2) == 0
                           : o->letter == word[1] && !word[2])
            return o;
    return NULL;
}

static bool is_literal (const char *word)
{
    for (; *word; word++)
        if (!islower ((unsigned char)*word) && *word != '-')
            return false;
    return true;
}

struct form_reader {
    const struct cli_option *options;
    const char *rest;
    int depth;
};

/* The next word without its brackets; false: the form is over. The value of an option is no word of its own. */
static bool form_next (struct form_reader *r, struct form_word *out)
{
    static const char more[] = "…";
    bool value = false;
    memset (out, 0, sizeof *out);
    do {
        while (*r->rest == ' ' || *r->rest == '[')
            r->depth += *r->rest++ == '[';
        size_t length = strcspn (r->rest, " ");
        if (length == 0)
            return false;
        size_t text = length;
        int closed = 0;
        while (text && (r->rest[text - 1] == ']' ||
                        (text >= 3 && memcmp (r->rest + text - 3, more, 3) == 0))) {
            bool bracket = r->rest[text - 1] == ']';
            closed += bracket;
            out->repeats |= !bracket;
            text -= bracket ? 1 : 3;
        }
        if (!value) {
            assert (text < WORD_MAX);
            memcpy (out->text, r->rest, text);
            out->depth = r->depth;
            if (out->text[0] == '-') {
                out->option = option_named (r->options, out->text);
                assert (out->option && "a form names an option that its command has not");
            }
        }
        value = !value && out->option && out->option->type != CLI_OPT_FLAG;
        r->depth -= closed;
        r->rest += length;
    } while (value);
    out->literal = !out->option && out->depth == 0 && is_literal (out->text);
    if (strncmp (r->rest, " | ", 3) == 0) {
        out->or_next = true;
        r->rest += 2;
    }
    return true;
}

/* --- which form it is --------------------------------------------------------------------- */

static uint64_t row_bit (const struct cli_said *said, const struct cli_option *option)
{
    return UINT64_C (1) << (option - said->command->options);
}

/* How a line compares with a form whose operands it has. */
struct form_fit {
    int words;                        /* that had to be said, and were */
    const struct cli_option *missing; /* the one that is not there; NULL: none */
    uint64_t extra; /* bits of options that were said and are none of the form's */
};

/* Whether the line is this form, or is but for one option or those too many. */
static bool form_compare (const struct cli_said *said, const struct cli_form *form,
                          struct form_fit *out)
{
    const struct cli_option *missing = NULL;
    struct form_reader r = {.options = said->command->options, .rest = form->words};
    struct form_word word;
    uint64_t allowed = 0, last[NESTING_MAX] = {0}, either = 0;
    int words = 0, least = 0, most = 0;
    while (form_next (&r, &word)) {
        if (!word.option) {
            least += word.depth == 0;
            most = word.repeats ? INT16_MAX : most + 1;
            if (word.literal && (words >= said->operands.count ||
                                 strcmp (said->operands.item[words], word.text) != 0))
                return false;
            words += word.literal;
            continue;
        }
        uint64_t bit = row_bit (said, word.option);
        assert (word.depth < NESTING_MAX);
        allowed |= bit;
        last[word.depth] = bit;
        if (word.depth > 1 && (said->given & bit) && !(said->given & last[word.depth - 1]))
            return false;
        if (word.or_next || either) {
            either |= bit;
            if (word.or_next)
                continue;
            bit = either;
            either = 0;
        }
        if (word.depth == 0 && !(said->given & bit)) {
            if (missing)
                return false;
            missing = word.option;
        }
    }
    *out = (struct form_fit){words, missing, said->given & ~allowed};
    return said->operands.count >= least && said->operands.count <= most;
}

static const struct cli_form *form_find (struct cli_said *said)
{
    struct form_fit fit;
    for (const struct cli_form *form = said->command->forms; form->words; form++)
        if (form_compare (said, form, &fit) && !fit.missing && !fit.extra) {
            said->operands.item += fit.words;
            said->operands.count -= fit.words;
            return form;
        }
    return NULL;
}

static bool form_allows (const struct cli_command *command, const struct cli_form *form,
                         const struct cli_option *option)
{
    struct form_reader r = {.options = command->options, .rest = form->words};
    struct form_word word;
    while (form_next (&r, &word))
        if (word.option == option)
            return true;
    return false;
}

/* An option that was said with a form that is not its own. */
static int extra_refuse (const struct cli_said *said, const struct cli_form *form, uint64_t extra)
{
    const struct cli_command *command = said->command;
    const struct cli_option *option = &command->options[__builtin_ctzll (extra)];
    const struct cli_form *own = command->forms;
    while (own->words && !form_allows (command, own, option))
        own++;
    assert (own->words && "an option that no form has");
    return cli_usage (command->name, "--%s is for nui %s %s, not for %s", option->name,
                      command->name, own->words, form->words);
}

/* One sentence: what is missing or too much where the form is clear, else all forms. */
static int forms_refuse (const struct cli_said *said)
{
    const struct cli_command *command = said->command;
    struct strbuf text = STRBUF_INIT;
    struct form_fit fit;
    const struct cli_form *form = command->forms;
    bool one = !form[1].words;
    for (; form->words; form++) {
        if (!form_compare (said, form, &fit))
            continue;
        if (fit.missing && !fit.extra && fit.words && fit.missing->value)
            return cli_usage (command->name, "say %s: with --%s %s", form->words, fit.missing->name,
                              fit.missing->value);
        if (!fit.missing && fit.extra)
            return extra_refuse (said, form, fit.extra);
    }
    form = command->forms;
    for (; form->words; form++) {
        if (form > command->forms)
            strbuf_puts (&text, form[1].words ? ", " : " or ");
        if (one || !islower ((unsigned char)form->words[0]))
            strbuf_printf (&text, "nui %s%s", command->name, *form->words ? " " : "");
        strbuf_puts (&text, form->words);
    }
    int rc = cli_usage (command->name, "say %s", strbuf_text (&text));
    strbuf_free (&text);
    return rc;
}

int cli_run_forms (struct cli_context *ctx, const struct cli_command *command, int argc,
                   char **argv)
{
    struct cli_said said = {.command = command, .arena = arena_create (0)};
    size_t rows = 0;
    int code;
    while (command->options && !cli_option_ends (&command->options[rows]))
        rows++;
    said.values = arena_zalloc (said.arena, (rows + 1) * sizeof *said.values);
    if (cli_options_values (ctx, command->options, command->flags, said.values, &said.given, argc,
                            argv, &said.operands, &code)) {
        said.form = form_find (&said);
        code = !said.form       ? forms_refuse (&said)
               : said.form->run ? said.form->run (ctx, &said)
                                : cli_send (ctx, &said);
    }
    arena_destroy (said.arena);
    return code;
}

void cli_forms_help (const struct cli_command *command, struct strbuf *out)
{
    const char *before = "usage: ";
    for (const struct cli_form *form = command->forms; form->words; form++) {
        strbuf_printf (out, "%snui %s%s", before, command->name, *form->words ? " " : "");
        cli_help_wrap (form->words, strlen ("usage: nui  ") + strlen (command->name), out);
        before = "       ";
    }
}

/* --- what was said ------------------------------------------------------------------------ */

static const struct cli_option *option_of (const struct cli_said *said, const char *name)
{
    for (const struct cli_option *o = said->command->options; o && !cli_option_ends (o); o++)
        if (o->name && strcmp (o->name, name) == 0)
            return o;
    assert (!"the command has no such option");
    return NULL;
}

const union cli_value *said_value (const struct cli_said *said, const struct cli_option *option)
{
    return &said->values[option - said->command->options];
}

bool said_given (const struct cli_said *said, const char *option)
{
    return said->given & row_bit (said, option_of (said, option));
}

const char *said_text (const struct cli_said *said, const char *option)
{
    const struct cli_option *o = option_of (said, option);
    assert (o->type == CLI_OPT_STRING || o->type == CLI_OPT_OPTIONAL);
    return said_value (said, o)->text;
}

bool said_flag (const struct cli_said *said, const char *option)
{
    const struct cli_option *o = option_of (said, option);
    assert (o->type == CLI_OPT_FLAG);
    return said_value (said, o)->flag;
}

int64_t said_number (const struct cli_said *said, const char *option)
{
    const struct cli_option *o = option_of (said, option);
    assert (o->type > CLI_OPT_LIST && o->type != CLI_OPT_PERIOD);
    return said_value (said, o)->number;
}

void said_period (const struct cli_said *said, struct cli_period *out)
{
    *out = (struct cli_period){said_number (said, "from"), said_number (said, "to")};
    if (said_given (said, "period"))
        *out = said_value (said, option_of (said, "period"))->period;
}

const struct cli_list *said_list (const struct cli_said *said, const char *option)
{
    const struct cli_option *o = option_of (said, option);
    assert (o->type == CLI_OPT_LIST);
    return &said_value (said, o)->list;
}

const char *said_operand (const struct cli_said *said, int at)
{
    return at < said->operands.count ? said->operands.item[at] : NULL;
}

const char *said_operand_name (const struct cli_said *said, int at)
{
    struct form_reader r = {.options = said->command->options, .rest = said->form->words};
    struct form_word word;
    const char *name = NULL;
    for (int i = 0; i <= at && form_next (&r, &word);) {
        if (word.option || word.literal)
            continue;
        name = arena_strdup (said->arena, word.text);
        i++;
    }
    return name;
}
