/* completion: makes what nui completion prints for bash, zsh and fish, from the commands' tables and
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

/* Words that only a daemon knows: after these commands, or options, the first column of what a command lists. Left out
 * where that command is not there. */
static const struct listed {
    const char *after; /* a pattern of the shell's */
    const char *by;
    const char *fish; /* the option as fish has it */
} operands[] =
    {{"status|watch|cancel|output|renew|restage", "jobs"},
     {"canceljob|checkjob|mjobctl|releasehold|runjob|setdeadline|sethold|setqos|setspri|showstart",
      "showq"}},
  values[] = {{"-A|--account", "balance", "-l account -s A"}, {"--site", "sites", "-l site"}};

static void append_listed (const struct cli_command *const *const *tables,
                           const struct listed *list, size_t count, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++)
        if (has_command (tables, list[i].by))
            strbuf_printf (
                out,
                "    %s)\n        COMPREPLY=($(compgen -W \"$(_nui_list %s)\" -- \"$cur\"))\n"
                "        return ;;\n",
                list[i].after, list[i].by);
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
    strbuf_puts (out,
                 "    *) echo '--json --csv --noheader --config --help --version' ;;\n"
                 "    esac\n}\n\n"
                 "_nui_list()\n{\n    nui \"$1\" --csv --noheader 2> /dev/null | cut -d, -f1\n}\n\n"
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
    append_listed (tables, values, sizeof values / sizeof *values, out);
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
    strbuf_puts (out, "    case $cmd in\n");
    append_listed (tables, operands, sizeof operands / sizeof *operands, out);
    strbuf_puts (out, "    esac\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n\n"
                      "complete -o filenames -F _nui nui");
    for (const struct cli_command *const *c = links; c && *c; c++)
        strbuf_printf (out, " %s", (*c)->name);
    strbuf_putc (out, '\n');
}

/* zsh runs bash's functions. */
void cli_completion_zsh (const struct cli_command *const *const *tables,
                         const struct cli_command *const *links, struct strbuf *out)
{
    strbuf_puts (out, "# zsh completion for nui; made by: nui completion zsh\n"
                      "autoload -U +X compinit && compinit -u\n"
                      "autoload -U +X bashcompinit && bashcompinit\n");
    cli_completion_bash (tables, links, out);
}

/* One of fish's rules: what is offered after one of these words; a pattern of the other shells, or one word. */
static void fish_after (const char *words, struct strbuf *out)
{
    strbuf_puts (out, "complete -c nui -n '__fish_seen_subcommand_from ");
    for (; *words; words++)
        strbuf_putc (out, *words == '|' ? ' ' : *words);
    strbuf_puts (out, "'");
}

static void fish_options (const struct cli_command *command, struct strbuf *out)
{
    struct strbuf help = STRBUF_INIT, list = STRBUF_INIT;
    char *rest, *word;
    cli_help_text (command, &help);
    append_options (strbuf_text (&help), &list);
    for (word = strtok_r (strbuf_text (&list), " ", &rest); word;
         word = strtok_r (NULL, " ", &rest)) {
        fish_after (command->name, out);
        strbuf_printf (out, " -l %s\n", word + 2);
    }
    strbuf_free (&help);
    strbuf_free (&list);
}

void cli_completion_fish (const struct cli_command *const *const *tables, struct strbuf *out)
{
    strbuf_puts (
        out,
        "# fish completion for nui; made by: nui completion fish\n"
        "function __nui_list\n    nui $argv --csv --noheader 2> /dev/null | string split -f 1 ,\nend\n"
        "complete -c nui -n __fish_use_subcommand -f -a 'help completion'\n");
    for (const struct cli_command *const *const *t = tables; *t; t++)
        for (const struct cli_command *const *c = *t; *c; c++) {
            strbuf_printf (out, "complete -c nui -n __fish_use_subcommand -f -a %s -d \"%s\"\n",
                           (*c)->name, (*c)->summary);
            fish_options (*c, out);
        }
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (has_command (tables, operands[i].by)) {
            fish_after (operands[i].after, out);
            strbuf_printf (out, " -f -a '(__nui_list %s)'\n", operands[i].by);
        }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (has_command (tables, values[i].by))
            strbuf_printf (out, "complete -c nui %s -x -a '(__nui_list %s)'\n", values[i].fish,
                           values[i].by);
}
