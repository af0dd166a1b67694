/* inputs: files that travel with a job: those named by --input, and arguments of its script that name files.
 *
 * Each becomes a transfer of the signed job, named by what it holds (nui:///SHA-256), and is sent before the job to whoever
 * takes it, once for each content: what is there is not sent again, what was cut is gone on with. A relative path keeps its
 * folders at the site; another path comes under its last name. */
#ifndef NUI_CLI_INPUTS_H
#define NUI_CLI_INPUTS_H

#include <stdbool.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/nui/v1/common.pb-c.h"

struct inputs;

struct inputs *inputs_create (struct arena *arena);
/* --input: a file, or all in a folder that is not hidden, into the component's list, which has room for JOB_STAGE_IN_MAX. What is
 * there under the same path is passed over. ERR_NOT_FOUND, ERR_INVALID, ERR_LIMIT. */
int inputs_add (struct inputs *inputs, const char *path, Nui__Common__V1__Component *component,
                struct err *err);
/* An argument: the same, if it is the relative path of a file here, without "..". */
int inputs_add_argument (struct inputs *inputs, const char *argument,
                         Nui__Common__V1__Component *component, struct err *err);

/* Puts some of a content where the job will be sent; the reply is freed by protobuf_c_message_free_unpacked. */
typedef int (*inputs_put_fn) (void *arg, const Nui__Common__V1__ContentRequest *request,
                              Nui__Common__V1__ContentReply **reply, struct err *err);
/* Sends all of them. The note of how much travels goes to stderr, with `command` before it; NULL: none. */
int inputs_send (struct inputs *inputs, const char *command, inputs_put_fn put, void *arg,
                 struct err *err);

#endif
