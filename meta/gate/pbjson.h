/* pbjson: protobuf messages as JSON and back, by their descriptors: the gate's extension says what the gRPC contract says.
 *
 * Fields have their names of the .proto; 64-bit numbers are texts (JSON's own numbers end at 2^53), bytes base64, enums
 * their names. What is not set is written, too, but for messages. Read are numbers as numbers or texts. Pure. */
#ifndef NUI_META_GATE_PBJSON_H
#define NUI_META_GATE_PBJSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "proto/base/err.h"

json_t *pbjson_write (const ProtobufCMessage *message);
/* ERR_INVALID names the field. The caller frees it with protobuf_c_message_free_unpacked. */
ProtobufCMessage *pbjson_read (const ProtobufCMessageDescriptor *descriptor, json_t *json,
                               struct err *err);
/* One field from text, as of a query: of a message without it, not repeated. ERR_NOT_FOUND: no such field. */
int pbjson_set (ProtobufCMessage *message, const char *field, const char *text, struct err *err);
/* An empty one, on the heap. */
ProtobufCMessage *pbjson_new (const ProtobufCMessageDescriptor *descriptor);
/* As a schema of OpenAPI 3.1: adds it, and what it contains, to the object schemas; returns a reference. */
json_t *pbjson_schema (const ProtobufCMessageDescriptor *descriptor, json_t *schemas);

#endif
