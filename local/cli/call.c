/* call: calls to a site, and the words and cells that its commands share. Every file of this
 * folder calls it. A site's commands have one site to ask: where it does not answer that is
 * said, and no other is asked in its place. */
#include "local/cli/local_cli.h"

#include <string.h>

#include "proto/base/clock.h"
#include "proto/cli/metas.h"
#include "proto/nui/v1/meta.pb-c.h"

int site_admin (struct cli_context *ctx, const char *site, const char *method, const void *request,
                bool idempotent, void *reply_out, struct err *err)
{
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    return rpcclient_call (client, &nui__local__v1__admin__descriptor, method, request,
                           SITE_CALL_TIMEOUT_S * US_PER_S, idempotent, reply_out, err);
}

/* Of the job's components; none, or several. */
static int one_site_of (const Nui__Meta__V1__JobStatus *status, char site[SITE_NAME_CAP],
                        struct err *err)
{
    *site = '\0';
    for (size_t i = 0; i < status->n_components; i++) {
        const char *name = status->components[i]->site;
        if (*site && *name && strcmp (site, name) != 0)
            return err_set (err, ERR_INVALID, "%s is at %s and at %s: --site says which is meant",
                            status->grid_job_id, site, name);
        if (*name)
            snprintf (site, SITE_NAME_CAP, "%s", name);
    }
    return *site ? 0
                 : err_set (err, ERR_NOT_FOUND, "%s is at no site: nui status %s says why",
                            status->grid_job_id, status->grid_job_id);
}

int site_of_grid_job (struct cli_context *ctx, const char *job, char buf[SITE_NAME_CAP],
                      const char **site, struct err *err)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err none;
    if (*site || strncmp (job, "grid.", 5) != 0 || cli_site_name (ctx, NULL, &none))
        return 0;
    struct metas *metas = cli_metas (ctx, err);
    request.grid_job_id = (char *)(uintptr_t)job;
    if (!metas || metas_call (metas, &nui__meta__v1__meta__descriptor, "Status", &request.base,
                              SITE_CALL_TIMEOUT_S * US_PER_S, &reply, err) < 0)
        return err->code;
    int rc = one_site_of ((const Nui__Meta__V1__JobStatus *)reply, buf, err);
    protobuf_c_message_free_unpacked (reply, NULL);
    *site = buf;
    return rc;
}

int site_taken (struct cli_context *ctx, const struct cli_said *said,
                const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    (void)ctx, (void)said, (void)option, (void)request, (void)err; /* says whom to ask */
    return 0;
}

/* A change that was lost on its way is not sent again: it could be made twice. */
static ProtobufCMessage *service_call (struct cli_context *ctx, const struct cli_said *said,
                                       const char *method, const ProtobufCMessage *request,
                                       struct err *err)
{
    ProtobufCMessage *reply = NULL;
    return site_admin (ctx, said_text (said, "site"), method, request, false, &reply, err) < 0
               ? NULL
               : reply;
}

const struct cli_service site_service = {&nui__local__v1__admin__descriptor, service_call};

int site_time (struct cli_context *ctx, const char *site, const char *text, time_us *out,
               struct err *err)
{
    Nui__Local__V1__ScheduleRequest request = NUI__LOCAL__V1__SCHEDULE_REQUEST__INIT;
    Nui__Local__V1__ScheduleReply *reply = NULL;
    struct err other = {0};
    time_us now = clock_now_us ();
    if (time_parse (text, now, out, err) != 0)
        return err->code;
    if (site_admin (ctx, site, "Schedule", &request, true, &reply, &other) == 0) {
        now = reply->now_us;
        nui__local__v1__schedule_reply__free_unpacked (reply, NULL);
    }
    return time_parse (text, now, out, err);
}

int worse (int so_far, int now)
{
    return so_far == CLI_OK ? now : so_far;
}

char *span_text (duration_us d, char *buf)
{
    return duration_format (d, buf);
}

char *moment_text (time_us t, char *buf)
{
    if (t == 0)
        return strcpy (buf, "-");
    return time_format_table (t, buf);
}

const char *or_none (const char *text)
{
    return text && *text ? text : "[NONE]";
}

const char *feature_of (char *const *list, size_t count, const char *prefix)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp (list[i], prefix, strlen (prefix)) == 0)
            return list[i] + strlen (prefix);
    return "[NONE]";
}

void features_plain (char *const *list, size_t count, struct strbuf *out)
{
    size_t before = out->len;
    for (size_t i = 0; i < count; i++)
        if (!strpbrk (list[i], ":<>="))
            strbuf_printf (out, "[%s]", list[i]);
    if (out->len == before)
        strbuf_puts (out, "[NONE]");
}

void cell_moment (struct table *table, int64_t t_us)
{
    if (t_us)
        table_time (table, t_us);
    else
        table_null (table);
}

void cell_text (struct table *table, const char *text)
{
    table_text (table, text && *text ? text : NULL);
}
