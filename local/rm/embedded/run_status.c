/* run_status: the two small files that say how a run began and ended. nui-supervise writes them where the run is; the
 * runner reads them, writes the end of a run whose supervisor died, and that of a run on another host. */
#include "local/rm/embedded/run_status.h"

#include "local/rm/supervise_file.h"
#include "proto/base/text.h"

enum rm_end run_end_of (const char *name)
{
    for (int e = 0; e <= RM_END_NODE_FAILURE; e++)
        if (strcmp (name, rm_end_name ((enum rm_end)e)) == 0)
            return (enum rm_end)e;
    return RM_END_NODE_FAILURE;
}

void run_status_read (int dir, struct rm_status *out)
{
    *out = (struct rm_status){0};
    size_t len;
    char *text = file_read_all (dir, "started", &len);
    if (text) {
        out->started = true;
        out->start = lines_get_int (text, "start_us");
        free (text);
    }
    text = file_read_all (dir, "status", &len);
    if (!text)
        return;
    text_mend (text, len);
    char name[32] = "";
    out->ended = true;
    lines_get (text, "end", name, sizeof name);
    out->end = run_end_of (name);
    out->exit_code = (int32_t)lines_get_int (text, "exit_code");
    if (!out->start)
        out->start = lines_get_int (text, "start_us");
    out->end_at = lines_get_int (text, "end_us");
    out->cpu_time = lines_get_int_or (text, "cpu_us", -1);
    out->cpu_known = out->cpu_time >= 0;
    lines_get (text, "text", out->text, sizeof out->text);
    free (text);
}

int run_started_write (int dir, const struct rm_status *status)
{
    char text[64];
    int n = snprintf (text, sizeof text, "pid=0\nstart_us=%lld\n", (long long)status->start);
    return file_write_durable (dir, "started", text, (size_t)n, 0644);
}

int run_status_write (int dir, const struct rm_status *status)
{
    char said[sizeof status->text], text[512], cpu[48] = "";
    text_printf (said, sizeof said, "%s", status->text);
    for (char *c = said; *c; c++)
        if (*c == '\n')
            *c = ' ';
    if (status->cpu_known)
        snprintf (cpu, sizeof cpu, "cpu_us=%lld\n", (long long)status->cpu_time);
    int n = snprintf (text, sizeof text,
                      "end=%s\nexit_code=%d\nstart_us=%lld\nend_us=%lld\n%stext=%s\n",
                      rm_end_name (status->end), status->exit_code, (long long)status->start,
                      (long long)status->end_at, cpu, said);
    return file_write_durable (dir, "status", text, (size_t)n, 0644);
}
