/* completion: makes the bash function that nui completion prints, from the commands' tables and
 * their help texts. The dispatcher calls it. It asks no daemon: the script it makes may do so
 * when Tab is pressed. */
#include "proto/cli/completion.h"

#include <ctype.h>
#include <string.h>

#include "proto/cli/client.h"

static bool starts_option (const char *help, const char *at)
{
    char before = at == help ? ' ' : at[-1];
    return at[0] == '-' && at[1] == '-' && islower ((unsigned char)at[2]) &&
           (before == ' ' || before == '[' || before == '\n' || before == '\t' || before == '|' ||
            before == '(' || before == ',' || before == '/');
}

static bool contains_word (const char *list, const char *word, size_t len)
{
    for (const char *at = list; (at = strstr (at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* The long options a help text names, once each, after those every command takes. */
static void append_options (const char *help, struct strbuf *out)
{
    struct strbuf list = STRBUF_INIT;
    strbuf_puts (&list, "--json --csv --noheader --config --help");
    for (const char *at = help; *at; at++) {
        if (!starts_option (help, at))
            continue;
        size_t len = 2;
        while (islower ((unsigned char)at[len]) || isdigit ((unsigned char)at[len]) ||
               at[len] == '-')
            len++;
        char word[64];
        if (len >= sizeof word)
            continue;
        memcpy (word, at, len);
        word[len] = '\0';
        if (!contains_word (strbuf_text (&list), word, len))
            strbuf_printf (&list, " %s", word);
        at += len - 1;
    }
    strbuf_append (out, list.data, list.len);
    strbuf_free (&list);
}

static bool has_command (const struct cli_command *const *const *tables, const char *name)
{
    for (; *tables; tables++)
        for (const struct cli_command *const *c = *tables; *c; c++)
            if (strcmp ((*c)->name, name) == 0)
                return true;
    return false;
}

/* Words that only a daemon knows; left out when the command that lists them is not there. */
static void append_dynamic (const struct cli_command *const *const *tables, struct strbuf *out)
{
    if (has_command (tables, "jobs"))
        strbuf_puts (out, "    case $cmd in\n"
                          "    status|watch|cancel|output)\n"
                          "        COMPREPLY=($(compgen -W \"$(nui jobs --csv --noheader"
                          " 2>/dev/null | cut -d, -f1)\" -- \"$cur\"))\n"
                          "        return ;;\n"
                          "    esac\n");
}

static void append_accounts (const struct cli_command *const *const *tables, struct strbuf *out)
{
    if (has_command (tables, "balance"))
        strbuf_puts (out, "    -A|--account)\n"
                          "        COMPREPLY=($(compgen -W \"$(nui balance --csv --noheader"
                          " 2>/dev/null | cut -d, -f1)\" -- \"$cur\"))\n"
                          "        return ;;\n");
}

void cli_completion_bash (const struct cli_command *const *const *tables,
                          const struct cli_command *const *links, struct strbuf *out)
{
    strbuf_puts (out, "# bash completion for nui; made by: nui completion bash\n"
                      "_nui_options()\n{\n    case $1 in\n");
    for (const struct cli_command *const *const *t = tables; *t; t++)
        for (const struct cli_command *const *c = *t; *c; c++) {
            struct strbuf help = STRBUF_INIT;
            cli_help_text (*c, &help);
            strbuf_printf (out, "    %s) echo '", (*c)->name);
            append_options (strbuf_text (&help), out);
            strbuf_free (&help);
            strbuf_puts (out, "' ;;\n");
        }
    strbuf_puts (out, "    *) echo '--json --csv --noheader --config --help --version' ;;\n"
                      "    esac\n}\n\n"
                      "_nui()\n{\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
                      " cmd='' i\n"
                      "    COMPREPLY=()\n"
                      "    cmd=${COMP_WORDS[0]##*/}\n"
                      "    if [[ $cmd == nui ]]; then\n"
                      "        cmd=''\n"
                      "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
                      "            [[ ${COMP_WORDS[i-1]} == --config ]] && continue\n"
                      "            [[ ${COMP_WORDS[i]} == -* ]] && continue\n"
                      "            cmd=${COMP_WORDS[i]}\n"
                      "            break\n"
                      "        done\n"
                      "    fi\n"
                      "    case $prev in\n"
                      "    --config)\n"
                      "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                      "        return ;;\n");
    append_accounts (tables, out);
    strbuf_puts (out, "    esac\n"
                      "    if [[ $cur == -* ]]; then\n"
                      "        COMPREPLY=($(compgen -W \"$(_nui_options \"$cmd\")\" -- \"$cur\"))\n"
                      "        return\n"
                      "    fi\n"
                      "    if [[ -z $cmd || $cmd == help ]]; then\n"
                      "        COMPREPLY=($(compgen -W 'help completion");
    for (const struct cli_command *const *const *t = tables; *t; t++)
        for (const struct cli_command *const *c = *t; *c; c++)
            strbuf_printf (out, " %s", (*c)->name);
    strbuf_puts (out, "' -- \"$cur\"))\n"
                      "        return\n"
                      "    fi\n");
    append_dynamic (tables, out);
    strbuf_puts (out, "    COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n\n"
                      "complete -o filenames -F _nui nui");
    for (const struct cli_command *const *c = links; c && *c; c++)
        strbuf_printf (out, " %s", (*c)->name);
    strbuf_putc (out, '\n');
}
