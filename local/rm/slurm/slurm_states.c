/* States of jobs, and no more of them (/jobs/state, from v0.0.41 on): a hundredth of what all their fields are. With many
 * jobs a look between whole ones reads these, and asks for the fields of those whose state is another; what else somebody
 * changes about a job shows in the next whole look. slurm_poll.c calls it, also to see which of many starts took place. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm/slurm_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { CHANGED_MAX = 256 };

struct states {
    struct slurm *slurm;
    bool look; /* all of them; else those that are watched */
    int (*on_job) (void *arg, const char *key, json_t *object, struct err *err);
    void (*then) (struct slurm *slurm, const struct slurm_answer *answer);
    char id[CHANGED_MAX][SLURM_ID_MAX]; /* whose fields are asked for */
    uint32_t count, left;
    bool many; /* more than that */
    struct slurm_answer answer;
};

static void states_want (struct states *s, const char *id)
{
    if (s->count > 0 && strcmp (s->id[s->count - 1], id) == 0)
        return; /* tasks of one array without records of their own */
    s->many |= s->count == CHANGED_MAX;
    if (!s->many)
        text_printf (s->id[s->count++], SLURM_ID_MAX, "%s", id);
}

/* id: of a job or a task; ask: by what its fields are asked for. */
static void states_one (struct states *s, const char *id, const char *ask, enum slurm_state state,
                        const char *word)
{
    struct slurm_job *job = slurm_job_by_rm (s->slurm, id);
    bool told = job && job->digest == 1 && state == SLURM_ENDED;
    if (!job && state == SLURM_ENDED)
        return;
    if (told || (job && job->state == state && strcmp (job->word, word) == 0)) {
        if (s->look) {
            job->seen = s->slurm->look;
            job->gone = false;
        }
    } else {
        states_want (s, ask);
    }
}

struct states_tasks {
    struct states *s;
    const char *array, *word;
    enum slurm_state state;
};

static void states_task (void *arg, uint32_t task)
{
    struct states_tasks *t = arg;
    char id[SLURM_ID_MAX];
    snprintf (id, sizeof id, "%s_%u", t->array, task);
    states_one (t->s, id, t->array, t->state, t->word);
}

/* "34", a task "33_2", tasks that have no records of their own "33_[4-9%2]", and "33_*" for all of them. */
static int states_take (void *arg, const char *key, json_t *object, struct err *err)
{
    struct states *s = arg;
    const char *id;
    char word[24], array[SLURM_ID_MAX];
    enum slurm_state state;
    if (strcmp (key, "jobs") != 0)
        return 0;
    if (slurm_text (object, "an entry of jobs/state", "job_id", true, &id, err) != 0 ||
        slurm_parse_state (object, id, "state", word, &state, err) != 0)
        return err->code;
    const char *rest = strpbrk (id, "_+");
    if (rest && *rest == '+') /* of a heterogeneous job */
        return 0;
    if (!rest || (rest[1] != '[' && rest[1] != '*')) {
        states_one (s, id, id, state, word);
        return 0;
    }
    text_printf (array, sizeof array, "%.*s", (int)(rest - id), id);
    if (rest[1] == '*') {
        s->many |= state != SLURM_ENDED;
    } else {
        struct states_tasks t = {.s = s, .array = array, .word = word, .state = state};
        slurm_tasks_each (rest + 2, RM_SLURM_JOBS_MAX, states_task, &t);
    }
    return 0;
}

static void states_end (struct states *s)
{
    struct slurm_answer answer = s->answer;
    struct slurm *slurm = s->slurm;
    void (*then) (struct slurm *, const struct slurm_answer *) = s->then;
    bool many = s->many && answer.code == 0;
    free (s);
    if (many)
        answer.code = ERR_LIMIT;
    then (slurm, &answer);
}

static void states_fields (void *arg, const struct slurm_answer *answer)
{
    struct states *s = arg;
    bool gone = answer->code == ERR_CONFLICT || answer->code == ERR_NOT_FOUND; /* meanwhile */
    if (answer->code != 0 && !gone && s->answer.code == 0)
        s->answer = *answer;
    if (--s->left == 0)
        states_end (s);
}

static int states_fields_take (void *arg, const char *key, json_t *object, struct err *err)
{
    struct states *s = arg;
    return s->on_job (s->slurm, key, object, err);
}

static void states_drop (void *arg)
{
    struct states *s = arg;
    if (--s->left == 0)
        free (s);
}

static void states_heard (void *arg, const struct slurm_answer *answer)
{
    struct states *s = arg;
    s->answer = *answer;
    s->left = answer->code == 0 && !s->many ? s->count : 0;
    if (s->left == 0) {
        states_end (s);
        return;
    }
    for (uint32_t i = 0, count = s->count; i < count; i++) {
        char path[SLURM_ID_MAX + 8];
        struct slurm_request request = {.method = "GET",
                                        .path = path,
                                        .on_object = states_fields_take,
                                        .on_done = states_fields,
                                        .on_drop = states_drop,
                                        .arg = s};
        snprintf (path, sizeof path, "job/%s", s->id[i]);
        slurm_rest_send (s->slurm->rest, &request);
    }
}

void slurm_states_ask (struct slurm *slurm, const char *ids,
                       int (*on_job) (void *arg, const char *key, json_t *object, struct err *err),
                       void (*then) (struct slurm *slurm, const struct slurm_answer *answer))
{
    struct states *s = calloc (1, sizeof *s);
    struct strbuf path = STRBUF_INIT;
    assert (s);
    s->slurm = slurm;
    s->look = !ids;
    s->on_job = on_job;
    s->then = then;
    s->left = 1;
    strbuf_printf (&path, "jobs/state/%s%s", ids ? "?job_id=" : "", ids ? ids : "");
    struct slurm_request request = {.method = "GET",
                                    .path = strbuf_text (&path),
                                    .on_object = states_take,
                                    .on_done = states_heard,
                                    .on_drop = states_drop,
                                    .arg = s};
    slurm_rest_send (slurm->rest, &request);
    strbuf_free (&path);
}
