/* rm_open: the adapter of a kind. The service calls it when it begins; it must not know how any of them works. */
#include "local/rm/rm_kind.h"

int rm_open (const struct rm_kind *kind, const struct rm_config *config, struct rm *out,
             struct err *err)
{
#define RM_ROW(name) {&rm_##name##_kind, rm_##name##_open},
    static const struct {
        const struct rm_kind *kind;
        int (*open) (const struct rm_config *config, struct rm *out, struct err *err);
    } rows[] = {RM_KINDS (RM_ROW)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind)
            return rows[i].open (config, out, err);
    return err_set (err, ERR_UNSUPPORTED, "RMCFG: no adapter for TYPE=%s", kind->name);
}
