#include "sim.h"

#include <pwd.h>
#include <stdarg.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/base/log.h"

struct sim sim;

/* ---- chance */

static uint64_t state[2];

uint64_t sim_random (void)
{
    uint64_t a = state[0], b = state[1];
    state[0] = b;
    a ^= a << 23;
    state[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return state[1] + b;
}

uint64_t sim_below (uint64_t n)
{
    return sim_random () % n;
}

bool sim_chance (uint32_t percent)
{
    return sim_below (100) < percent;
}

void sim_fail (const char *fmt, ...)
{
    va_list ap;
    fflush (stdout);
    fprintf (stderr, "seed %" PRIu64 ", at %.3f s: ", sim.seed, (double)sim.now / 1e6);
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fputc ('\n', stderr);
    exit (1);
}

/* ---- the heap of what is to happen */

static struct todo **heap;
static size_t heap_count, heap_cap;
static uint64_t heap_order;

static bool sooner (const struct todo *a, const struct todo *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put (size_t place, struct todo *todo)
{
    heap[place] = todo;
    todo->place = place;
}

static void sift (size_t place, struct todo *todo)
{
    for (; place > 1 && sooner (todo, heap[place / 2]); place /= 2)
        put (place, heap[place / 2]);
    for (size_t child; (child = 2 * place) <= heap_count; place = child) {
        if (child < heap_count && sooner (heap[child + 1], heap[child]))
            child++;
        if (!sooner (heap[child], todo))
            break;
        put (place, heap[child]);
    }
    put (place, todo);
}

void todo_drop (struct todo *todo)
{
    size_t place = todo->place;
    if (!place)
        return;
    struct todo *last = heap[heap_count--];
    todo->place = 0;
    if (last != todo)
        sift (place, last);
}

void todo_set (struct todo *todo, time_us at)
{
    todo_drop (todo);
    if (heap_count + 2 > heap_cap) {
        heap_cap = heap_cap ? 2 * heap_cap : 1024;
        heap = realloc (heap, heap_cap * sizeof *heap);
        if (!heap)
            abort ();
    }
    todo->at = at > sim.now ? at : sim.now;
    todo->order = ++heap_order;
    sift (++heap_count, todo);
}

struct once {
    struct todo todo;
    struct machine *machine;
    uint64_t life;
    void (*fn) (void *arg);
    void *arg;
};

static void once_run (void *arg)
{
    struct once once = *(struct once *)arg;
    free (arg);
    if (!once.machine || (once.machine->self && once.machine->life == once.life))
        once.fn (once.arg);
    else
        free (once.arg);
}

void todo_once (struct machine *machine, time_us at, void (*fn) (void *arg), void *arg)
{
    struct once *once = calloc (1, sizeof *once);
    if (!once)
        abort ();
    *once = (struct once){
        .machine = machine, .life = machine ? machine->life : 0, .fn = fn, .arg = arg};
    once->todo = (struct todo){.machine = machine, .fn = once_run, .arg = once};
    todo_set (&once->todo, at);
}

/* ---- running */

void sim_begin (uint64_t seed, time_us epoch)
{
    bool trace = sim.trace;
    memset (&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.trace = trace;
    sim.epoch = epoch;
    state[0] = seed * UINT64_C (0x9E3779B97F4A7C15) + 1;
    state[1] = seed ^ UINT64_C (0xD1B54A32D192ED03);
    for (int i = 0; i < 16; i++)
        sim_random ();
}

bool sim_run (time_us until)
{
    while (heap_count && heap[1]->at <= until) {
        struct todo *todo = heap[1];
        todo_drop (todo);
        sim.now = todo->at;
        sim.self = todo->machine;
        sim.method = NULL;
        sim.events++;
        if (sim.self)
            sim.self->ran = true;
        todo->fn (todo->arg);
        sim.self = NULL;
        machines_bury ();
        if (sim.on_step)
            sim.on_step ();
    }
    if (!heap_count)
        return false;
    sim.now = until;
    return true;
}

void sim_end (void)
{
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        machine_kill (&sim.machine[i], -1);
        simbase_destroy (sim.machine[i].base);
    }
    while (heap_count) {
        struct todo *todo = heap[1];
        todo_drop (todo);
        if (todo->fn == once_run) {
            struct once *once = todo->arg;
            if (once->machine)
                free (once->arg);
            else
                net_drop (once->fn, once->arg);
            free (once);
        }
    }
    sim.machine_count = 0;
}

/* ---- what the programs know as clock.h and log.h */

time_us clock_now_us (void)
{
    return sim.self ? machine_wall (sim.self) : sim.epoch + sim.now;
}

duration_us clock_monotonic_us (void)
{
    return sim.now + (sim.self ? sim.self->mono_base : 0);
}

void random_bytes (void *out, size_t len)
{
    unsigned char *at = out;
    for (size_t i = 0; i < len; i++)
        at[i] = (unsigned char)sim_random ();
}

void uuid_make (struct uuid *out)
{
    random_bytes (out->b, sizeof out->b);
    out->b[6] = (uint8_t)((out->b[6] & 0x0f) | 0x40);
    out->b[8] = (uint8_t)((out->b[8] & 0x3f) | 0x80);
}

/* Processor time passes by being asked for, so that a seed repeats: and fast, for who forecasts takes
 * a share of it and would else be most of what a world costs. */
int __wrap_clock_gettime (clockid_t id, struct timespec *out);
int __wrap_clock_gettime (clockid_t id, struct timespec *out)
{
    time_us now = id == CLOCK_REALTIME            ? clock_now_us ()
                  : id == CLOCK_THREAD_CPUTIME_ID ? ++sim.cpu_asked * 150 * MS
                                                  : sim.now;
    out->tv_sec = (time_t)(now / SEC);
    out->tv_nsec = (long)(now % SEC) * 1000;
    return 0;
}

/* The name service of the machine that this runs on has no say. */
int __wrap_getpwnam_r (const char *name, struct passwd *out, char *buf, size_t cap,
                       struct passwd **found);
int __wrap_getpwnam_r (const char *name, struct passwd *out, char *buf, size_t cap,
                       struct passwd **found)
{
    (void)name;
    (void)out;
    (void)buf;
    (void)cap;
    *found = NULL;
    return 0;
}

void log_event (struct log *log, enum log_level level, const char *area, const char *event,
                const char *fmt, ...)
{
    static const char *const wrong[] = {"core_disagrees", "bad_event"};
    char text[2048];
    va_list ap;
    (void)log;
    bool bad = false;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        bad = bad || strcmp (event, wrong[i]) == 0;
    bool counted = level <= LOG_LEVEL_INFO;
    if (counted && !coverage_wants_text (area, event)) {
        coverage_log (area, event, NULL);
        counted = false;
    }
    if (!bad && !counted && (!sim.trace || level > LOG_LEVEL_INFO))
        return;
    va_start (ap, fmt);
    vsnprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    if (counted)
        coverage_log (area, event, text);
    TRACE ("%-6s %s.%s %s", sim.self ? sim.self->name : "-", area, event, text);
    CHECK (!bad, "%s logs %s.%s %s", sim.self ? sim.self->name : "-", area, event, text);
}

const char *log_quote (const char *text, char *buf, size_t cap)
{
    snprintf (buf, cap, "\"%s\"", text);
    return buf;
}
