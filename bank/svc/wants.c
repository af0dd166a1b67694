/* What must hold of a writing call before it is submitted. */
#include <string.h>

#include "bank/svc/service_impl.h"

/* An identity that the bank may know: a user of this grid. */
int user_check (const struct work *work, const char *identity, struct err *err)
{
    struct principal p;
    if (principal_parse (identity, &p, err) < 0)
        return err->code;
    if (p.kind != PRINCIPAL_USER)
        return err_set (err, ERR_INVALID, "'%.200s' is not a user's identity", identity);
    if (strcmp (p.grid, tlsid_self (work->svc->id)->grid) != 0)
        return err_set (err, ERR_INVALID, "'%.200s' is of another grid", identity);
    return 0;
}

int number_parse (const char *prefix, const char *text, bool optional, int64_t *id_out,
                  struct err *err)
{
    char got[8];
    uint64_t number;
    *id_out = 0;
    if (optional && !text[0])
        return 0;
    if (id_parse (text, got, sizeof (got), &number, NULL) < 0 || strcmp (got, prefix) != 0 ||
        number == 0 || number > INT64_MAX)
        return err_set (err, ERR_INVALID, "'%.64s' is not %s, such as %s.7", text,
                        prefix[0] == 'a'   ? "an allocation"
                        : prefix[0] == 'q' ? "a quote"
                                           : "a grant",
                        prefix);
    *id_out = (int64_t)number;
    return 0;
}

struct work *write_begin (void *self, struct rpccall *call, const ProtobufCMessage *request,
                          enum ledger_kind kind, const ProtobufCBinaryData *key,
                          const ProtobufCMessageDescriptor *reply)
{
    struct work *work = work_create (self, call, request);
    request_begin (work, kind, key, reply, &work->err);
    return work;
}

void want_name (struct work *work, const char *what, const char *name)
{
    if (good (work))
        name_check (what, name, &work->err);
}

void want_text (struct work *work, const char *what, const char *text, size_t max)
{
    if (good (work))
        text_check (what, text, max, &work->err);
}

void want_user (struct work *work, const char *identity)
{
    if (good (work))
        user_check (work, identity, &work->err);
}

void want_number (struct work *work, const char *prefix, const char *text, bool optional,
                  int64_t *id_out)
{
    if (good (work))
        number_parse (prefix, text, optional, id_out, &work->err);
}

void write_submit (struct work *work)
{
    if (good (work))
        request_submit (work);
    else
        work_fail (work, &work->err);
}
