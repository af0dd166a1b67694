/* request: the call that a form stands for. Its request is filled from what was said, by the descriptor of the method.
 *
 * An operand or option fills the field that is called like it (message.h): AMOUNT fills amount_micro, --allocation
 * allocation_id. A form's `fields` says otherwise, and sets what nobody says:
 *
 *     .fields = "name=PROJECT reason=--description remove=true"
 *
 * and an option's row for all forms: .field = "description|reason", the first that the request has. A field `key` gets a
 * new idempotency key; one called `identity` the whole identity of the user that is named. Nothing that was said is
 * dropped: where the request has no field for it, the program aborts.
 *
 * The answer is printed as the form says: `columns` over a reply with a list are its rows. Else `sentence` is for people,
 * {amount} being a field of the reply or the request, {parent|none} with a word for an empty one, {users#user} a number of them; programs get
 * `columns` as one record, or without them the reply's id and the sentence. */
#ifndef NUI_CLI_REQUEST_H
#define NUI_CLI_REQUEST_H

#include "proto/cli/said.h"

struct cli_service {
    const ProtobufCServiceDescriptor *descriptor;
    /* One call; NULL with err. Free the reply with protobuf_c_message_free_unpacked. */
    ProtobufCMessage *(*call) (struct cli_context *ctx, const struct cli_said *said,
                               const char *method, const ProtobufCMessage *request,
                               struct err *err);
};

/* Calls and prints. Returns enum cli_exit. */
int cli_send (struct cli_context *ctx, const struct cli_said *said);
/* The pieces, for forms with a function. The request is in said's arena; NULL: *code_out, told. */
ProtobufCMessage *cli_request (struct cli_context *ctx, const struct cli_said *said, int *code_out);
/* Any message, filled likewise: a part of a request. */
ProtobufCMessage *cli_fill (struct cli_context *ctx, const struct cli_said *said,
                            const ProtobufCMessageDescriptor *type, int *code_out);
/* Calls with it; NULL: *code_out, told. */
ProtobufCMessage *cli_answer (struct cli_context *ctx, const struct cli_said *said,
                              const ProtobufCMessage *request, int *code_out);
/* cli_send with a request that is made already, and a sentence of its own; NULL: the form's. */
int cli_send_request (struct cli_context *ctx, const struct cli_said *said,
                      const ProtobufCMessage *request, const char *sentence);

/* "alice" -> "nui://<my grid>/user/alice"; an identity stays as it is. */
int cli_identity_of (struct cli_context *ctx, const char *text, char buf[PRINCIPAL_URI_MAX],
                     struct err *err);

#endif
