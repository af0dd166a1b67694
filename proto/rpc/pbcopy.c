/* pbcopy: copies a message by packing and unpacking it, for those who keep one longer than its
 * call lives, most of them in nui-meta. NULL when there is no memory or no message. */
#include "proto/rpc/pbcopy.h"

#include <stdlib.h>

ProtobufCMessage *pbcopy (const ProtobufCMessage *message)
{
    size_t len = message ? protobuf_c_message_get_packed_size (message) : 0;
    uint8_t *bytes = message ? malloc (len + 1) : NULL;
    ProtobufCMessage *copy = NULL;
    if (bytes) {
        protobuf_c_message_pack (message, bytes);
        copy = protobuf_c_message_unpack (message->descriptor, NULL, len, bytes);
    }
    free (bytes);
    return copy;
}
