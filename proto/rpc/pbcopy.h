/* pbcopy: a message of one's own. */
#ifndef NUI_RPC_PBCOPY_H
#define NUI_RPC_PBCOPY_H

#include <protobuf-c/protobuf-c.h>

/* By packing and unpacking: whole, and free of what the original lives in. NULL: of NULL, or no memory. Freed
 * with protobuf_c_message_free_unpacked. */
ProtobufCMessage *pbcopy (const ProtobufCMessage *message);

#endif
