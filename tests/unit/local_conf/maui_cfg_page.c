/* The table of maui.cfg(5), written from the tables of parameters: between its two marks in the page must stand what this
 * prints. A test compares; `maui_cfg_page PAGE` puts it there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/policyconf.h"
#include "proto/base/strbuf.h"

static const char begin_mark[] = ".\\\" parameters: begin\n",
                  end_mark[] = ".\\\" parameters: end\n";

struct page {
    struct strbuf out;
};

static void on_default (void *arg, const struct conf_param *param, const char *name,
                        const char *value)
{
    struct page *page = arg;
    char takes[256];
    strbuf_printf (&page->out, ".TP\n.BR %s \" (%s)\"\n", name, value);
    strbuf_printf (&page->out, "%s\n", param->help);
    if (param->type != CONF_CALL)
        strbuf_printf (&page->out, ".br\n(%s)\n", conf_takes (param, takes, sizeof takes));
}

/* Those that are nothing without a file. */
static void without_default (struct page *page)
{
    for (const struct conf_param *p = policy_file_params; p->name; p++)
        if (!p->otherwise && !p->initial)
            strbuf_printf (&page->out, ".TP\n.B %s%s\n%s\n", p->name,
                           p->type == CONF_RECORD ? "[name]" : "", p->help);
}

static void other_names (struct page *page)
{
    const char *of = NULL, *before = "";
    strbuf_puts (&page->out, ".PP\nOther names:");
    for (const struct conf_param *p = policy_params; p->name; p++) {
        if (!(p->flags & CONF_F_ALIAS))
            continue;
        for (const struct conf_param *q = policy_params; q->name; q++)
            if (q->offset == p->offset && !(q->flags & CONF_F_ALIAS))
                of = q->name;
        strbuf_printf (&page->out, "%s\n%s for %s", before, p->name, of);
        before = ",";
    }
    strbuf_puts (&page->out, ".\n");
}

/* Maui's that are not here: one sentence, and the names that it is about. */
static const char *sentence (const struct conf_param *p)
{
    return p->why ? p->why : p->help;
}

static void by_sentence (struct page *page, const struct conf_param *table)
{
    for (const struct conf_param *p = table; p->name; p++) {
        bool first = true;
        for (const struct conf_param *q = table; q < p && first; q++)
            first = !sentence (q) || !sentence (p) || strcmp (sentence (q), sentence (p)) != 0;
        if (!sentence (p) || !first)
            continue;
        strbuf_printf (&page->out, ".TP\n.B %s", p->name);
        for (const struct conf_param *q = p + 1; q->name; q++)
            if (sentence (q) && strcmp (sentence (q), sentence (p)) == 0)
                strbuf_printf (&page->out, " %s", q->name);
        strbuf_printf (&page->out, "\n%s\n", sentence (p));
    }
}

static void told (struct page *page)
{
    strbuf_puts (&page->out,
                 ".SS Limits as Maui 3.0 wrote them\n"
                 "POLICY ON has COUNT kept, and softly SMAX...COUNT. What USERCFG[DEFAULT] and its "
                 "kin say themselves counts more.\n");
    by_sentence (page, policy_older_params);
    strbuf_puts (&page->out, ".SS Parameters of Maui's that Nui does not have\n"
                             "Taken, and told with what there is in their place.\n");
    by_sentence (page, policy_known_params);
}

static void page_make (struct page *page)
{
    struct cred_names names;
    struct policy *policy = NULL;
    struct err err = {0};
    struct arena *arena = arena_create (0);
    struct conf *conf = conf_parse ("", 0, "none", &err);
    cred_names_init (&names);
    if (!conf || policy_conf_read (conf, &names, &policy, &err) != 0) {
        fprintf (stderr, "maui_cfg_page: %s\n", err.text);
        exit (1);
    }
    conf_show (conf, arena, on_default, page);
    without_default (page);
    other_names (page);
    told (page);
    policy_destroy (policy);
    conf_destroy (conf);
    cred_names_free (&names);
    arena_destroy (arena);
}

static char *file_read (const char *path)
{
    struct strbuf text = STRBUF_INIT;
    char chunk[8192];
    size_t n;
    FILE *f = fopen (path, "r");
    if (!f) {
        perror (path);
        exit (2);
    }
    while ((n = fread (chunk, 1, sizeof chunk, f)) > 0)
        strbuf_append (&text, chunk, n);
    fclose (f);
    return strbuf_steal (&text);
}

int main (int argc, char **argv)
{
    if (argc < 2 || (argc == 3 && strcmp (argv[2], "--check") != 0)) {
        fprintf (stderr, "usage: maui_cfg_page PAGE [--check]\n");
        return 2;
    }
    struct page page = {.out = STRBUF_INIT};
    char *text = file_read (argv[1]);
    char *from = strstr (text, begin_mark), *to = strstr (text, end_mark);
    if (!from || !to) {
        fprintf (stderr, "%s has no marks for the table of parameters\n", argv[1]);
        return 1;
    }
    from += strlen (begin_mark);
    page_make (&page);
    bool same = (size_t)(to - from) == page.out.len &&
                memcmp (from, strbuf_text (&page.out), page.out.len) == 0;
    int code = 0;
    if (argc == 3 && !same) {
        fprintf (stderr,
                 "%s: its table of parameters is not that of local/conf/policyconf.c; "
                 "run %s %s\n",
                 argv[1], argv[0], argv[1]);
        code = 1;
    } else if (argc == 2) {
        FILE *f = fopen (argv[1], "w");
        code = !f ||
               fprintf (f, "%.*s%s%s", (int)(from - text), text, strbuf_text (&page.out), to) < 0 ||
               fclose (f) != 0;
    }
    strbuf_free (&page.out);
    free (text);
    return code;
}
