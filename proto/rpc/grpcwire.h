/* grpcwire: the text and framing rules of gRPC over HTTP/2. Pure: no I/O, no clock; fuzzed.
 *
 * Sources: "gRPC over HTTP2" (PROTOCOL-HTTP2.md) and "HTTP to gRPC status code mapping" in the
 * gRPC repository's doc folder. Nothing here allocates except the reader's message body. */
#ifndef NUI_RPC_GRPCWIRE_H
#define NUI_RPC_GRPCWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/quantity.h"

enum {
    GRPCWIRE_PREFIX_LEN = 5,     /* compressed flag, length in network order */
    GRPCWIRE_TIMEOUT_MAX = 12,   /* 8 digits, unit, NUL, rounded up */
    GRPCWIRE_MESSAGE_MAX = 1024, /* bytes of grpc-message before encoding; longer is cut */
    GRPCWIRE_PATH_MAX = 256,
};

/* "application/grpc", alone or followed by '+' or ';'. */
bool grpcwire_content_type_ok (const char *text, size_t len);

/* At most 8 digits and one of H M S m u n. Rounds nanoseconds up. Saturates at INT64_MAX. */
bool grpcwire_timeout_parse (const char *text, size_t len, duration_us *out);
/* The finest unit that fits 8 digits, rounded up so that the server never gives up first. */
char *grpcwire_timeout_format (duration_us timeout, char buf[GRPCWIRE_TIMEOUT_MAX]);

/* Percent-encodes everything outside 0x20..0x7e and '%'. Cuts at a character boundary to what
 * fits cap (including the NUL); returns the length. cap of 3 * GRPCWIRE_MESSAGE_MAX + 1 fits all. */
size_t grpcwire_percent_encode (const char *text, size_t len, char *out, size_t cap);
/* Decodes; a '%' without two hex digits stays as it is; bytes that are not UTF-8, and NUL, become
 * '?'. Returns the length (cap includes the NUL). */
size_t grpcwire_percent_decode (const char *text, size_t len, char *out, size_t cap);

/* grpc-status: decimal 0..16; other numbers are UNKNOWN (2), false when it is no number. */
bool grpcwire_status_parse (const char *text, size_t len, int *out);
/* What a response without grpc-status means. */
int grpcwire_status_of_http (int http_status);
/* What a stream that was reset without grpc-status means (code of RST_STREAM). */
int grpcwire_status_of_reset (uint32_t http2_error);

void grpcwire_prefix_put (uint8_t out[GRPCWIRE_PREFIX_LEN], uint32_t len);

/* Takes length-prefixed messages out of a byte stream. Zero-initialise, then set max. */
struct grpcwire_reader {
    uint32_t max;  /* largest body */
    uint32_t len;  /* announced, valid once prefix_have is 5 */
    uint32_t have; /* bytes of body */
    uint32_t cap;
    uint8_t *body; /* owned */
    uint8_t prefix[GRPCWIRE_PREFIX_LEN];
    uint8_t prefix_have;
};

enum grpcwire_read {
    GRPCWIRE_MORE,       /* everything consumed, message incomplete */
    GRPCWIRE_COMPLETE,   /* one message in body/len; take it, then call again with the rest */
    GRPCWIRE_COMPRESSED, /* the flag is set: no compression was agreed */
    GRPCWIRE_TOO_LARGE,  /* announced length over max */
    GRPCWIRE_BAD,        /* flag neither 0 nor 1 */
    GRPCWIRE_NOMEM,
};

/* Consumes up to the end of one message; *used says how much. After an error the reader stays as
 * it is and must not be fed again. Memory grows with what arrived, not with what was announced. */
enum grpcwire_read grpcwire_feed (struct grpcwire_reader *r, const uint8_t *data, size_t len,
                                  size_t *used);
/* True between messages (an end of stream here is clean). */
bool grpcwire_reader_idle (const struct grpcwire_reader *r);
void grpcwire_reader_next (struct grpcwire_reader *r);  /* forgets the message, keeps the memory */
void grpcwire_reader_clear (struct grpcwire_reader *r); /* frees the body */

#endif
