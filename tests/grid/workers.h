/* workers: many worlds in several processes. A world that fails, or hangs, ends its process and no other:
 * its seed is listed, and another process goes on with the next one. */
#ifndef NUI_TESTS_GRID_WORKERS_H
#define NUI_TESTS_GRID_WORKERS_H

#include <stdint.h>

enum { WORKERS_MAX = 256 };

/* Runs world (seed) for each from `first` on, between begin and end in each process. Says on stderr how far it is, once a minute. Returns how many failed, after they
 * are listed. */
uint64_t workers_run (uint64_t first, uint64_t seeds, uint32_t processes,
                      void (*begin) (uint32_t process), void (*world) (uint64_t seed),
                      void (*end) (void));

#endif
