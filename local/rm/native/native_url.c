/* native_url: the attributes of RMCFG that say where each call goes, taken apart. The configuration checks them by it, and
 * native_call.c goes there. Whether anything is at that place shows when it is called. */
#include "local/rm/native/native_url.h"

#include <string.h>

static const struct {
    const char *attr, *verb;
    bool query;
} calls[RM_CALLS] = {
    [RM_CALL_CLUSTERQUERY] = {"CLUSTERQUERYURL", "clusterquery", true},
    [RM_CALL_WORKLOADQUERY] = {"WORKLOADQUERYURL", "workloadquery", true},
    [RM_CALL_JOBSUBMIT] = {"JOBSUBMITURL", "jobsubmit", false},
    [RM_CALL_JOBSTART] = {"JOBSTARTURL", "jobstart", false},
    [RM_CALL_JOBCANCEL] = {"JOBCANCELURL", "jobcancel", false},
    [RM_CALL_JOBREQUEUE] = {"JOBREQUEUEURL", "jobrequeue", false},
    [RM_CALL_JOBSUSPEND] = {"JOBSUSPENDURL", "jobsuspend", false},
    [RM_CALL_JOBRESUME] = {"JOBRESUMEURL", "jobresume", false},
    [RM_CALL_JOBMODIFY] = {"JOBMODIFYURL", "jobmodify", false},
};

const char *native_url_name (enum rm_call call)
{
    return calls[call].attr;
}

/* "path?word&word". */
static int words_split (const char *attr, char *path, struct native_url *out, struct err *err)
{
    char *save = NULL, *more = strchr (path, '?');
    if (more)
        *more++ = 0;
    if (*path != '/')
        return err_set (err, ERR_INVALID,
                        "RMCFG: %s names '%.60s': wanted a whole path, exec:///path", attr, path);
    out->word[out->word_count++] = path;
    for (char *w = more ? strtok_r (more, "&", &save) : NULL; w; w = strtok_r (NULL, "&", &save)) {
        if (out->word_count == NATIVE_WORDS_MAX)
            return err_set (err, ERR_LIMIT, "RMCFG: %s has more than %d words after '?'", attr,
                            NATIVE_WORDS_MAX - 1);
        out->word[out->word_count++] = w;
    }
    return 0;
}

static bool begins (const char *text, const char *with)
{
    return strncmp (text, with, strlen (with)) == 0;
}

static int url_parse (enum rm_call call, char *text, struct native_url *out, struct err *err)
{
    const char *attr = calls[call].attr;
    *out = (struct native_url){.text = text};
    if (begins (text, "exec://")) {
        out->scheme = NATIVE_EXEC;
        return words_split (attr, text + strlen ("exec://"), out, err);
    }
    if (begins (text, "http://") || begins (text, "https://")) {
        out->scheme = NATIVE_HTTP;
        return 0;
    }
    if (!begins (text, "file://"))
        return err_set (err, ERR_INVALID,
                        "RMCFG: %s is '%.60s': wanted exec://, http:// or, of a query, file://",
                        attr, text);
    if (!calls[call].query)
        return err_set (err, ERR_INVALID, "RMCFG: %s cannot be a file: a file does nothing", attr);
    if (text[strlen ("file://")] != '/')
        return err_set (err, ERR_INVALID, "RMCFG: %s: wanted a whole path, file:///path", attr);
    out->scheme = NATIVE_FILE;
    out->word[0] = "/bin/cat";
    out->word[1] = "--";
    out->word[2] = text + strlen ("file://");
    out->word_count = 3;
    return 0;
}

int native_url_of (const struct rm_options *options, enum rm_call call, struct arena *arena,
                   struct native_url *out, struct err *err)
{
    const char *own = options->url[call], *adapter = options->adapter;
    if (own)
        return url_parse (call, arena_strdup (arena, own), out, err);
    if (!adapter) {
        *out = (struct native_url){.scheme = NATIVE_NOWHERE};
        return 0;
    }
    bool http = begins (adapter, "http");
    const char *join = http ? "/" : strchr (adapter, '?') ? "&" : "?";
    return url_parse (call,
                      arena_printf (arena, "%s%s%s%s", *adapter == '/' ? "exec://" : "", adapter,
                                    join, calls[call].verb),
                      out, err);
}
