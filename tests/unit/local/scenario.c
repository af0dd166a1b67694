#include "tests/unit/local/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void scenario_bad (const struct scenario *s, uint32_t line, const char *fmt, ...)
{
    va_list ap;

    fprintf (stderr, "%s:%u: ", s->path, line);
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fputc ('\n', stderr);
    exit (2);
}

void scenario_must (const struct scenario *s, uint32_t line, int rc, const struct err *err)
{
    if (rc != 0)
        scenario_bad (s, line, "%s", err->text);
}

static void line_add (struct scenario *s, struct lines *list, uint32_t number, char *text)
{
    struct line *line = arena_new (s->arena, struct line);

    line->number = number;
    for (char *at = text; *(at += strspn (at, " \t"));) {
        bool quoted = *at == '"';
        char *end = quoted ? strchr (at + 1, '"') : at + strcspn (at, " \t");
        if (*at == '#')
            break;
        if (!end || line->count == WORDS_MAX)
            scenario_bad (s, number, "an open quote, or more than %d words", WORDS_MAX);
        line->word[line->count++] = at + quoted;
        at = *end ? end + 1 : end;
        *end = '\0';
    }
    if (line->count == 0)
        return;
    if (list->last)
        list->last->next = line;
    else
        list->first = line;
    list->last = line;
}

/* The page's beginning: Monday, 23 November 2026, 0:00, or [clock] says it. */
static void clock_read (struct scenario *s, uint32_t number, char *text)
{
    struct err err = {0};

    text += strspn (text, " \t");
    if (*text && *text != '#')
        scenario_must (s, number, time_parse (text, s->base, &s->base, &err), &err);
}

static void file_read (struct scenario *s)
{
    static const char *const section[] = {"[config]", "[nodes]",  "[jobs]",
                                          "[events]", "[expect]", "[clock]"};
    struct lines *list[] = {NULL, &s->nodes, &s->jobs, &s->events, &s->expect, NULL};
    FILE *file = fopen (s->path, "r");
    char *text = NULL;
    size_t cap = 0, in = SIZE_MAX;
    uint32_t number = 0;

    if (!file)
        scenario_bad (s, 0, "cannot be opened");
    while (getline (&text, &cap, file) >= 0) {
        number++;
        text[strcspn (text, "\r\n")] = '\0';
        if (*text == '[') {
            for (in = 0; in < 6 && strcmp (text, section[in]) != 0;)
                in++;
            if (in == 6)
                scenario_bad (s, number, "%s is no section", text);
            s->config_line = in == 0 ? number : s->config_line;
        } else if (in == SIZE_MAX) {
            if (*text && *text != '#')
                scenario_bad (s, number, "before the first section there is only # text");
        } else if (in == 0) {
            strbuf_printf (&s->config, "%s\n", text);
        } else if (in == 5) {
            clock_read (s, number, text);
        } else {
            line_add (s, list[in], number, arena_strdup (s->arena, text));
        }
    }
    free (text);
    fclose (file);
}

/* Does the page expect that its configuration is refused? */
static bool expects_refusal (const struct scenario *s)
{
    return s->expect.first && strcasecmp (s->expect.first->word[0], "refused") == 0;
}

static void refusal_check (struct scenario *s, int rc, const struct err *err)
{
    const struct line *line = s->expect.first;

    if (line->count != 2 || line->next)
        scenario_bad (s, line->number, "refused \"PART OF THE SENTENCE\", and nothing else");
    if (rc != 0 && strstr (err->text, line->word[1]))
        return;
    fprintf (stderr, "%s:%u:\n  expected: refused, with \"%s\"\n  actual:   %s\n", s->path,
             line->number, line->word[1], rc ? err->text : "the configuration is taken");
    s->wrong++;
}

/* What is noted as not available is not covered: it fails the page. */
static int config_read (struct scenario *s, struct err *err)
{
    int rc;

    s->conf = conf_parse (strbuf_text (&s->config), s->config.len, s->path, err);
    if (!s->conf)
        return err->code;
    rc = policy_conf_read (s->conf, &s->names, &s->policy, err);
    if (rc == 0)
        rc = nodeconf_read (s->conf, &s->nodeconf, err);
    if (rc == 0)
        rc = policy_conf_known (s->conf, err);
    if (rc == 0)
        rc = conf_finish (s->conf, err);
    if (rc == 0 && conf_note_count (s->conf))
        rc = err_set (err, ERR_UNSUPPORTED, "%s", conf_note (s->conf, 0));
    return rc;
}

int main (int argc, char **argv)
{
    struct scenario s = {.arena = arena_create (0), .pass_arena = arena_create (0)};
    struct err err = {0};
    int rc;

    if (argc != 2) {
        fprintf (stderr, "usage: scenario FILE\n");
        return 2;
    }
    setenv ("TZ", "UTC", 1);
    s.path = argv[1];
    s.base = INT64_C (1795392000) * US_PER_S;
    cred_names_init (&s.names);
    s.features = strtab_create ();
    s.reservations = strtab_create ();
    setenv ("TZ", "UTC", 1); /* SRCFG goes by the local calendar */
    file_read (&s);
    rc = config_read (&s, &err);
    if (expects_refusal (&s)) {
        refusal_check (&s, rc, &err);
    } else {
        scenario_must (&s, s.config_line, rc, &err);
        scenario_nodes_read (&s);
        scenario_jobs_read (&s);
        scenario_run (&s);
        scenario_check_named (&s);
    }
    cluster_destroy (s.cluster);
    policy_destroy (s.policy);
    conf_destroy (s.conf);
    cred_names_free (&s.names);
    strtab_destroy (s.features);
    strtab_destroy (s.reservations);
    standing_destroy (s.standing);
    if (s.place.column)
        place_close (&s.place);
    nodeconf_free (&s.nodeconf);
    strbuf_free (&s.config);
    arena_destroy (s.arena);
    arena_destroy (s.pass_arena);
    return s.wrong ? 1 : 0;
}
