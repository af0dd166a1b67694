/* Any JSON as a body for the gate: a message of the contract and a JobSpec, taken whole, in which case they come back as they
 * were, or refused with a sentence. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "meta/gate/gate.h"
#include "meta/gate/pbjson.h"
#include "proto/rpc/pbguard.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static uint8_t *packed (const ProtobufCMessage *message, size_t *len_out)
{
    *len_out = protobuf_c_message_get_packed_size (message);
    uint8_t *bytes = malloc (*len_out + 1);
    if (!bytes)
        abort ();
    protobuf_c_message_pack (message, bytes);
    return bytes;
}

static void as_message (json_t *json)
{
    struct err err = {0};
    size_t a_len, b_len;
    ProtobufCMessage *one = pbjson_read (&nui__common__v1__job__descriptor, json, &err);
    if (!one) {
        assert (err.code == ERR_INVALID && err.text[0]);
        return;
    }
    json_t *back = pbjson_write (one);
    ProtobufCMessage *two = pbjson_read (&nui__common__v1__job__descriptor, back, &err);
    assert (two);
    uint8_t *a = packed (one, &a_len), *b = packed (two, &b_len);
    assert (a_len == b_len && memcmp (a, b, a_len) == 0);
    free (a), free (b);
    json_decref (back);
    protobuf_c_message_free_unpacked (one, NULL);
    protobuf_c_message_free_unpacked (two, NULL);
}

static void as_spec (json_t *json)
{
    struct arena *arena = arena_create (0);
    struct err err = {0};
    Nui__Common__V1__Job *job;
    size_t len;
    if (jobspec_read (json, NULL, arena, &job, &err) < 0) {
        assert (err.code && err.text[0]);
    } else {
        uint8_t *bytes = packed (&job->base, &len);
        assert (pbguard_check (&nui__common__v1__job__descriptor, bytes, len, &err) == 0);
        Nui__Common__V1__Job *signed_ = nui__common__v1__job__unpack (NULL, len, bytes);
        assert (signed_);
        json_t *back = jobspec_write (signed_);
        assert (json_equal (json, back));
        json_decref (back);
        nui__common__v1__job__free_unpacked (signed_, NULL);
        free (bytes);
    }
    arena_destroy (arena);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    json_t *json =
        json_loadb ((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!json)
        return 0;
    as_message (json);
    as_spec (json);
    json_decref (json);
    return 0;
}
