/* Fuzz target: every pure function of grpcwire and pbguard, with the relations between them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/nui/v1/common.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/base/text.h"
#include "proto/rpc/grpcwire.h"
#include "proto/rpc/pbguard.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void texts (const char *text, size_t len)
{
    char encoded[3 * GRPCWIRE_MESSAGE_MAX + 1], decoded[3 * GRPCWIRE_MESSAGE_MAX + 1];
    char buf[GRPCWIRE_TIMEOUT_MAX];
    duration_us us, again;
    int status;

    (void)grpcwire_content_type_ok (text, len);
    if (grpcwire_timeout_parse (text, len, &us)) {
        assert (us >= 0);
        grpcwire_timeout_format (us, buf);
        assert (grpcwire_timeout_parse (buf, strlen (buf), &again) && again >= us);
    }
    if (grpcwire_status_parse (text, len, &status))
        assert (status >= 0 && status <= 16);
    size_t n = grpcwire_percent_decode (text, len, decoded, sizeof (decoded));
    assert (n < sizeof (decoded) && text_ok (decoded, n));
    if (len > GRPCWIRE_MESSAGE_MAX)
        len = GRPCWIRE_MESSAGE_MAX;
    n = grpcwire_percent_encode (text, len, encoded, sizeof (encoded));
    size_t back = grpcwire_percent_decode (encoded, n, decoded, sizeof (decoded));
    if (text_ok (text, len))
        assert (back == len && memcmp (decoded, text, len) == 0);
}

static void stream (const uint8_t *data, size_t size)
{
    struct grpcwire_reader r = {.max = 4096};
    size_t piece = size > 0 ? data[0] % 37 + 1u : 1, at = 0, used;

    while (at < size) {
        size_t n = size - at < piece ? size - at : piece;
        enum grpcwire_read got = grpcwire_feed (&r, data + at, n, &used);
        assert (used <= n && r.have <= r.len && r.cap <= 4096);
        at += used;
        if (got == GRPCWIRE_COMPLETE)
            grpcwire_reader_next (&r);
        else if (got != GRPCWIRE_MORE)
            break;
        else
            assert (used == n);
    }
    grpcwire_reader_clear (&r);
}

/* What is taken in can be sent out again, and passes the guard again. */
static void message (const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size)
{
    struct err err;
    ProtobufCMessage *m = pbguard_unpack (descriptor, data, size, &err);

    if (!m)
        return;
    size_t len = protobuf_c_message_get_packed_size (m);
    uint8_t *packed = malloc (len + 1);
    assert (packed && protobuf_c_message_pack (m, packed) == len);
    int rc = pbguard_check (descriptor, packed, len, &err);
    assert (rc == 0 || rc == ERR_LIMIT);
    free (packed);
    protobuf_c_message_free_unpacked (m, NULL);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] & 3) {
    case 0:
        texts ((const char *)data + 1, size - 1);
        break;
    case 1:
        stream (data + 1, size - 1);
        break;
    case 2:
        message (&nui__common__v1__job__descriptor, data + 1, size - 1);
        break;
    default:
        message (&nui__local__v1__job_info__descriptor, data + 1, size - 1);
        break;
    }
    return 0;
}
