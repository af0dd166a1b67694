/* slurm_json: what slurmrestd answers, piece by piece.
 *
 * An answer about 10,000 jobs has tens of megabytes: the splitter finds the objects of its arrays
 * as bytes arrive, so that no more than one job is parsed at a time. Getters are typed: a field
 * that is missing or of another type is an error that names it. Both shapes are read: that of v0.0.38
 * and before (plain numbers, one word for a state), and that of v0.0.40 and later (numbers as {"set", "infinite",
 * "number"}, states and features as lists). Pure but for memory. */
#ifndef NUI_LOCAL_RM_SLURM_JSON_H
#define NUI_LOCAL_RM_SLURM_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/strbuf.h"

enum { SLURM_OBJECT_MAX = 8 << 20 };

/* Objects in arrays that are members of the answer ("jobs", "nodes", "errors" …), and the members of its
 * object "paths" (of an OpenAPI document). */
struct slurm_split {
    struct strbuf object; /* being collected */
    char key[64];         /* member of the answer whose array we are in */
    char text[64];        /* the last string at depth 1, or 2: maybe a key */
    char name[64];        /* of a member of "paths": its key, while fn has it */
    uint32_t text_len;
    int depth;
    bool string, escape, array, paths, collecting, begun, done;
};

void slurm_split_init (struct slurm_split *split);
void slurm_split_free (struct slurm_split *split);
/* fn gets each complete object (its pointer holds during the call); a non-zero return ends the
 * feeding with that code. ERR_INVALID: this is no JSON object, ERR_LIMIT. */
int slurm_split_feed (struct slurm_split *split, const char *bytes, size_t len,
                      int (*fn) (void *arg, const char *key, json_t *object, struct err *err),
                      void *arg, struct err *err);

/* Of an object: `what` names it in errors ("job 12"). A null or absent-when-optional field leaves
 * `otherwise`, and so does a number that is not set or infinite. */
int slurm_int (const json_t *o, const char *what, const char *field, bool required,
               int64_t otherwise, int64_t *out, struct err *err);
int slurm_text (const json_t *o, const char *what, const char *field, bool required,
                const char **out, struct err *err); /* never NULL; belongs to the object */
/* A list of words is "a,b" in out. */
int slurm_words (const json_t *o, const char *what, const char *field, struct strbuf *out,
                 struct err *err);
/* A list of words, or one word. */
bool slurm_has_word (const json_t *o, const char *field, const char *word);

/* What is wrong according to an answer's "errors"; false when the entry carries no error number
 * (22.05 adds such entries to what succeeded). */
bool slurm_error_of (const json_t *entry, int64_t *number, char *text, size_t cap);

#endif
