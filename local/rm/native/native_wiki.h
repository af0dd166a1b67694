/* native_wiki: the Wiki Interface Specification 1.1: what is said over its socket, and the answers as the lists that an adapter prints.
 *
 *   00000052\nCK=0000000000000000 TS=1795690000 AUTH=nui DT=CMD=GETNODES ARG=0:ALL
 *   00000060\nCK=0000000000000000 TS=1795690000 AUTH=rm DT=SC=0 ARG=1#n1:STATE=Idle;CPROC=4;
 *
 * Pure. CK is no security, and neither made nor believed: the socket's permissions, or the loopback, are. */
#ifndef NUI_LOCAL_RM_NATIVE_WIKI_H
#define NUI_LOCAL_RM_NATIVE_WIKI_H

#include "local/rm/rm_kind.h"
#include "proto/base/arena.h"

enum { NATIVE_WIKI_HEAD = 9 }; /* eight digits and a newline */

/* One frame for that call and its words (native_call.c); NULL: Wiki has no such call. */
char *native_wiki_ask (enum rm_call call, const char *const *words, long long now,
                       struct arena *arena);
/* Of a head: how many bytes follow; ERR_INVALID. */
int native_wiki_length (const char head[NATIVE_WIKI_HEAD], size_t most, size_t *out,
                        struct err *err);
/* What follows a head, as native_parse has it. query: with a list. ERR_INVALID: it is no answer. */
int native_wiki_read (const char *text, bool query, struct arena *arena, const char **out,
                      struct err *err);

#endif
