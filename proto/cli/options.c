/* options: parses argv by a command's table and prints that table as help. Every command comes
 * through here. It never calls exit and acts on nothing: the whole line is read and found good
 * before the command begins. */
#include "proto/cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

enum { NAMES_MAX = 128 };

struct parse {
    struct cli_context *ctx;
    const struct cli_option *table;
    char *values;
    int argc;
    char **argv;
    int at; /* the argument being read */
    const char *command;
    bool slots;     /* values is a union cli_value for each row */
    uint64_t given; /* bit by row */
};

enum { COMMON_JSON, COMMON_CSV, COMMON_NOHEADER, COMMON_CONFIG, COMMON_HELP, COMMON_COUNT };
static const char *const common_names[] = {"json", "csv", "noheader", "config", "help"};

/* Where the value of an option goes, which counts as given from then on. */
static char *option_place (struct parse *p, const struct cli_option *o)
{
    size_t row = (size_t)(o - p->table);
    assert (row < 64 || !p->slots);
    p->given |= row < 64 ? UINT64_C (1) << row : 0;
    return p->values + (p->slots ? row * sizeof (union cli_value) : o->offset);
}

/* What became of one argument. */
enum outcome { OUT_OK, OUT_USAGE, OUT_HELP };

static enum outcome usage (const struct parse *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

static enum outcome usage (const struct parse *p, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    cli_usage (p->command, "%s", text);
    return OUT_USAGE;
}

bool cli_option_ends (const struct cli_option *o)
{
    return !o->name && !o->letter;
}

static enum outcome unknown_long (const struct parse *p, const char *name)
{
    const char *names[NAMES_MAX + COMMON_COUNT + 1];
    int n = 0;
    for (const struct cli_option *o = p->table; !cli_option_ends (o) && n < NAMES_MAX; o++)
        if (o->name)
            names[n++] = o->name;
    for (int i = 0; i < COMMON_COUNT; i++)
        names[n++] = common_names[i];
    names[n] = NULL;
    const char *near = conf_nearest (name, names);
    if (near)
        return usage (p, "unknown option --%.60s, did you mean --%s?", name, near);
    return usage (p, "unknown option --%.60s", name);
}

static int parse_number (const struct cli_option *o, const char *label, const char *text, char *to,
                         struct err *err)
{
    int64_t number = 0;
    uint64_t count = 0;
    int rc;
    switch (o->type) {
    case CLI_OPT_COUNT:
        rc = uint_parse (text, label, (uint64_t)o->min, o->max ? (uint64_t)o->max : UINT64_MAX,
                         &count, err);
        if (rc == 0)
            memcpy (to, &count, sizeof count);
        return rc;
    case CLI_OPT_INT:
        rc = int_parse (text, label, o->min || o->max ? o->min : INT64_MIN,
                        o->min || o->max ? o->max : INT64_MAX, &number, err);
        if (rc == 0)
            memcpy (to, &number, sizeof number);
        return rc;
    case CLI_OPT_DURATION:
        rc = duration_parse (text, &number, err);
        break;
    case CLI_OPT_TIME:
        rc = time_parse (text, clock_now_us (), &number, err);
        break;
    case CLI_OPT_PAST:
        rc = time_parse_past (text, clock_now_us (), &number, err);
        break;
    case CLI_OPT_MEMORY:
        rc = memory_parse (text, &number, err);
        break;
    default:
        rc = credit_parse (text, &number, err);
        if (rc == 0 && (o->min || o->max) && (number < o->min || number > o->max))
            rc = err_set (err, ERR_INVALID, "'%.80s' must %s", text,
                          o->min > 0 ? "be more than nothing" : "not be negative");
        break;
    }
    if (rc < 0)
        return err_prefix (err, "%s", label);
    memcpy (to, &number, sizeof number);
    return 0;
}

static enum outcome store (struct parse *p, const struct cli_option *o, const char *text)
{
    char *to = option_place (p, o);
    char label[80];
    if (o->name)
        snprintf (label, sizeof label, "--%s", o->name);
    else
        snprintf (label, sizeof label, "-%c", o->letter);
    if (o->type == CLI_OPT_STRING || o->type == CLI_OPT_OPTIONAL) {
        memcpy (to, &text, sizeof text);
        return OUT_OK;
    }
    if (o->type == CLI_OPT_LIST) {
        struct cli_list *list = (struct cli_list *)(void *)to;
        if (list->count == CLI_LIST_MAX)
            return usage (p, "%s: given more than %d times", label, CLI_LIST_MAX);
        list->item[list->count++] = text;
        return OUT_OK;
    }
    struct err err = {0};
    if (o->type == CLI_OPT_PERIOD) {
        struct cli_period *period = (struct cli_period *)(void *)to;
        if (period_parse (text, clock_now_us (), &period->from, &period->to, &err) < 0)
            return usage (p, "%s: %s", label, err.text);
        return OUT_OK;
    }
    if (parse_number (o, label, text, to, &err) < 0)
        return usage (p, "%s", err.text);
    return OUT_OK;
}

static void set_flag (struct parse *p, const struct cli_option *o)
{
    bool yes = true;
    memcpy (option_place (p, o), &yes, sizeof yes);
}

/* The value of an option that has none joined to it: the next argument. */
static const char *next_value (struct parse *p, const struct cli_option *o)
{
    if (p->at + 1 >= p->argc)
        return o->type == CLI_OPT_OPTIONAL ? "" : NULL;
    const char *next = p->argv[p->at + 1];
    if (o->type == CLI_OPT_OPTIONAL && !(next[0] >= '0' && next[0] <= '9') && next[0] != '+')
        return "";
    p->at++;
    return next;
}

static enum outcome common (struct parse *p, int which, const char *joined)
{
    if (which != COMMON_CONFIG && joined)
        return usage (p, "--%s takes no value", common_names[which]);
    switch (which) {
    case COMMON_JSON:
        cli_set_format (p->ctx, CLI_JSON);
        return OUT_OK;
    case COMMON_CSV:
        cli_set_format (p->ctx, CLI_CSV);
        return OUT_OK;
    case COMMON_NOHEADER:
        cli_set_noheader (p->ctx, true);
        return OUT_OK;
    case COMMON_CONFIG:
        if (!joined) {
            if (p->at + 1 >= p->argc)
                return usage (p, "--config needs a file");
            joined = p->argv[++p->at];
        }
        cli_set_config (p->ctx, joined);
        return OUT_OK;
    default:
        return OUT_HELP;
    }
}

static enum outcome take_long (struct parse *p, const char *arg)
{
    char name[64];
    const char *equals = strchr (arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen (arg);
    if (len >= sizeof name)
        return usage (p, "unknown option --%.60s", arg);
    memcpy (name, arg, len);
    name[len] = '\0';
    const char *joined = equals ? equals + 1 : NULL;
    for (const struct cli_option *o = p->table; !cli_option_ends (o); o++) {
        if (!o->name || strcmp (o->name, name) != 0)
            continue;
        if (o->type == CLI_OPT_FLAG) {
            if (joined)
                return usage (p, "--%s takes no value", name);
            set_flag (p, o);
            return OUT_OK;
        }
        const char *value = joined ? joined : next_value (p, o);
        return value ? store (p, o, value) : usage (p, "--%s needs a value", name);
    }
    for (int i = 0; i < COMMON_COUNT; i++)
        if (strcmp (common_names[i], name) == 0)
            return common (p, i, joined);
    return unknown_long (p, name);
}

static const struct cli_option *find_letter (const struct parse *p, char letter)
{
    for (const struct cli_option *o = p->table; !cli_option_ends (o); o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static enum outcome take_letters (struct parse *p, const char *arg)
{
    for (; *arg; arg++) {
        const struct cli_option *o = find_letter (p, *arg);
        if (!o && *arg == 'h')
            return OUT_HELP;
        if (!o)
            return usage (p, "unknown option -%c", *arg);
        if (o->type == CLI_OPT_FLAG) {
            set_flag (p, o);
            continue;
        }
        const char *value = arg[1] ? arg + 1 : next_value (p, o);
        return value ? store (p, o, value) : usage (p, "-%c needs a value", *arg);
    }
    return OUT_OK;
}

static bool is_operand (const struct parse *p, const char *arg)
{
    if (arg[0] != '-' || arg[1] == '\0')
        return true;
    return arg[1] >= '0' && arg[1] <= '9' && !find_letter (p, arg[1]);
}

/* --- help --------------------------------------------------------------------------------- */

enum { HELP_LEFT = 26, HELP_WIDTH = 100 };

void cli_help_wrap (const char *text, size_t left, struct strbuf *out)
{
    for (size_t at = left; *text;) {
        size_t word = strcspn (text, " ");
        if (at > left && at + 1 + word > HELP_WIDTH) {
            strbuf_printf (out, "\n%*s", (int)left, "");
            at = left;
        }
        strbuf_puts (out, at > left ? " " : "");
        strbuf_append (out, text, word);
        at += word + (at > left);
        text += word;
        text += strspn (text, " ");
    }
    strbuf_putc (out, '\n');
}

void cli_options_help (const struct cli_option *o, struct strbuf *out)
{
    for (; !cli_option_ends (o); o++) {
        char letter[] = {'-', o->letter, '\0'}, left[128];
        if (!o->help)
            continue; /* another spelling */
        snprintf (left, sizeof left, "  %s%s%s%s%s%s", o->letter ? letter : "  ",
                  !o->name    ? ""
                  : o->letter ? ", "
                              : "  ",
                  o->name ? "--" : "", o->name ? o->name : "", o->value ? " " : "",
                  o->value ? o->value : "");
        size_t length = strlen (left);
        strbuf_puts (out, left);
        if (length + 2 > HELP_LEFT)
            strbuf_printf (out, "\n%*s", HELP_LEFT, "");
        else
            strbuf_printf (out, "%*s", (int)(HELP_LEFT - length), "");
        cli_help_wrap (o->help, HELP_LEFT, out);
    }
}

/* --- a whole line ------------------------------------------------------------------------- */

static const struct cli_option none[] = {{0}};

static bool options_read (struct parse *p, unsigned flags, struct cli_operands *operands_out,
                          int *exit_code_out)
{
    char **argv = p->argv;
    int kept = 1; /* operands are moved to argv[1 …]; never past what was read */
    bool only_operands = false;
    enum outcome out = OUT_OK;
    for (; p->at < p->argc && out == OUT_OK; p->at++) {
        char *arg = argv[p->at];
        if (only_operands || is_operand (p, arg)) {
            argv[kept++] = arg;
            only_operands |= (flags & CLI_STOP_AT_OPERAND) != 0;
        } else if (strcmp (arg, "--") == 0) {
            only_operands = true;
        } else if (arg[1] == '-') {
            out = take_long (p, arg + 2);
        } else {
            out = take_letters (p, arg + 1);
        }
    }
    *exit_code_out = out == OUT_OK || out == OUT_HELP ? CLI_OK : CLI_USAGE;
    if (out == OUT_OK) {
        *operands_out = (struct cli_operands){.count = kept - 1, .item = argv + 1};
        if (!(flags & CLI_STOP_AT_OPERAND)) /* those are a script and its arguments */
            cli_set_operands (p->ctx, operands_out);
        return true;
    }
    if (out == OUT_HELP)
        cli_print_help (cli_command (p->ctx));
    return false;
}

bool cli_options (struct cli_context *ctx, const struct cli_option *table, unsigned flags,
                  void *values, int argc, char **argv, struct cli_operands *operands_out,
                  int *exit_code_out)
{
    struct parse p = {.ctx = ctx,
                      .table = table ? table : none,
                      .values = values,
                      .argc = argc,
                      .argv = argv,
                      .at = 1,
                      .command = argv[0]};
    return options_read (&p, flags, operands_out, exit_code_out);
}

bool cli_options_values (struct cli_context *ctx, const struct cli_option *table, unsigned flags,
                         union cli_value *values, uint64_t *given_out, int argc, char **argv,
                         struct cli_operands *operands_out, int *exit_code_out)
{
    struct parse p = {.ctx = ctx,
                      .table = table ? table : none,
                      .values = (char *)values,
                      .argc = argc,
                      .argv = argv,
                      .at = 1,
                      .command = argv[0],
                      .slots = true};
    bool go_on = options_read (&p, flags, operands_out, exit_code_out);
    *given_out = p.given;
    return go_on;
}
