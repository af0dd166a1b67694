/* message: a protobuf message's fields by the names people use for them. Pure.
 *
 * The descriptor knows name, type and place of every field, so tables, sentences and requests name a field in a
 * word instead of copying it by hand. A name is the field's own, or the field's without the end that says its unit:
 * "amount" is amount_micro, "walltime" walltime_us, "hold" hold_id, "start_time" start_us. O(log fields). */
#ifndef NUI_CLI_MESSAGE_H
#define NUI_CLI_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/arena.h"

/* NULL: the message has none of that name. */
const ProtobufCFieldDescriptor *message_field (const ProtobufCMessageDescriptor *type,
                                               const char *name);
/* Whether the field's own name ends so: "_micro", "_us" … */
bool message_field_ends (const ProtobufCFieldDescriptor *field, const char *end);
/* Its place in a message. */
void *message_at (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* By a path of names, "job.user". The message that holds the field, which may be message itself; NULL: a message on
 * the way is not there. A name that the descriptors do not have is an error of the program: it aborts. */
const ProtobufCMessage *message_follow (const ProtobufCMessage *message, const char *path,
                                        const ProtobufCFieldDescriptor **field_out);

/* Value of an integer, a bool or an enum. */
int64_t message_integer (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
void message_set_integer (ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          int64_t value);
/* A repeated field: an array of pointers that outlives the message. */
void message_set_list (ProtobufCMessage *message, const char *name, void *items, size_t count);
size_t message_list (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                     void **items_out);
/* The word of an enum's value, without what all its values begin with: "cancelled" for QUOTE_CANCELLED. In the arena. */
const char *message_word (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          struct arena *arena);
/* A string, or the repeated ones with `between` between them; "" where there is none. */
const char *message_text (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          const char *between, struct arena *arena);
/* Where a sum is beyond 64 bits: the text of "amount_wide" beside amount_micro; else "". */
const char *message_wide (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The first repeated field of messages; NULL: there is none. */
const ProtobufCFieldDescriptor *message_rows (const ProtobufCMessageDescriptor *type);

/* Without fields, in the arena. */
ProtobufCMessage *message_new (const ProtobufCMessageDescriptor *type, struct arena *arena);

#endif
