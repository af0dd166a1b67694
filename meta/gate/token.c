/* Bearer tokens, checked. The door asks for each request; what metascheduler, sites and bank check again is the delegation in
 * them, what only the gate can is that its bearer knows the secret. */
#include "meta/gate/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"

#define TOKEN_FOR_US (60 * US_PER_S)
enum { TOKEN_SLOTS = 1024, TOKEN_BYTES_MAX = GATEDELEG_BYTES_MAX * 4 / 3 + 100, SECRET_BYTES = 32 };

struct tokens {
    struct tlsid *id;
    X509_STORE *store; /* by which those here were found good: another after a reload */
    struct token *slot[TOKEN_SLOTS];
};

struct tokens *tokens_create (struct tlsid *id)
{
    struct tokens *tokens = calloc (1, sizeof *tokens);
    if (!tokens)
        abort ();
    tokens->id = id;
    return tokens;
}

static void tokens_forget (struct tokens *tokens)
{
    for (size_t i = 0; i < TOKEN_SLOTS; i++) {
        token_unref (tokens->slot[i]);
        tokens->slot[i] = NULL;
    }
}

void tokens_destroy (struct tokens *tokens)
{
    if (!tokens)
        return;
    tokens_forget (tokens);
    X509_STORE_free (tokens->store);
    free (tokens);
}

void token_unref (struct token *token)
{
    if (!token || --token->refs > 0)
        return;
    if (token->says)
        nui__common__v1__gate_delegation__free_unpacked (token->says, NULL);
    free (token->delegation.data);
    free (token->header);
    free (token);
}

/* base64url without padding into malloc'ed bytes. */
static bool base64url_read (const char *text, size_t len, ProtobufCBinaryData *out)
{
    size_t pad = (4 - len % 4) % 4;
    char *copy = malloc (len + pad + 1);
    out->data = malloc (len + 4);
    if (!copy || !out->data)
        abort ();
    for (size_t i = 0; i < len; i++)
        copy[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    memset (copy + len, '=', pad);
    int n = pad == 3 || len == 0
                ? -1
                : EVP_DecodeBlock (out->data, (const unsigned char *)copy, (int)(len + pad));
    free (copy);
    out->len = n > (int)pad ? (size_t)n - pad : 0;
    return out->len > 0;
}

static int secret_check (const struct token *token, const char *secret, struct err *err)
{
    ProtobufCBinaryData bytes = {0, NULL};
    uint8_t hash[SHA256_BYTES];
    bool ok = base64url_read (secret, strlen (secret), &bytes) && bytes.len == SECRET_BYTES;
    if (ok) {
        sha256 (bytes.data, bytes.len, hash);
        ok = CRYPTO_memcmp (hash, token->says->secret_hash.data, sizeof hash) == 0;
    }
    free (bytes.data);
    return ok ? 0 : err_set (err, ERR_UNAUTHENTIC, "the token's secret is not the delegation's");
}

static int token_read (struct tokens *tokens, struct token *token, const char *bearer, time_us now,
                       struct err *err)
{
    const char *dot = strchr (bearer, '.');
    if (!dot || !base64url_read (bearer, (size_t)(dot - bearer), &token->delegation))
        return err_set (err, ERR_UNAUTHENTIC, "the token is none of nui delegate");
    token->says = gatedeleg_open (tokens->id, &token->delegation, tlsid_self (tokens->id), now,
                                  &token->user, err);
    if (!token->says || secret_check (token, dot + 1, err) < 0)
        return err->code;
    token->header = malloc (token->delegation.len / 3 * 4 + 8);
    if (!token->header)
        abort ();
    EVP_EncodeBlock ((unsigned char *)token->header, token->delegation.data,
                     (int)token->delegation.len);
    token->until = now + TOKEN_FOR_US;
    if (token->until > token->says->expires_us)
        token->until = token->says->expires_us;
    return 0;
}

struct token *tokens_check (struct tokens *tokens, const char *bearer, time_us now, struct err *err)
{
    uint8_t digest[SHA256_BYTES];
    size_t len = strlen (bearer);
    if (len > TOKEN_BYTES_MAX) {
        err_set (err, ERR_UNAUTHENTIC, "the token has %zu bytes, at most %d are taken", len,
                 TOKEN_BYTES_MAX);
        return NULL;
    }
    if (tokens->store != tlsid_store (tokens->id)) {
        tokens_forget (tokens);
        X509_STORE_free (tokens->store);
        tokens->store = tlsid_store (tokens->id);
        X509_STORE_up_ref (tokens->store);
    }
    sha256 (bearer, len, digest);
    struct token **slot = &tokens->slot[(digest[0] | digest[1] << 8) % TOKEN_SLOTS];
    if (*slot && memcmp ((*slot)->digest, digest, sizeof digest) == 0 && (*slot)->until > now) {
        (*slot)->refs++;
        return *slot;
    }
    struct token *token = calloc (1, sizeof *token);
    if (!token)
        abort ();
    token->refs = 1;
    memcpy (token->digest, digest, sizeof digest);
    if (token_read (tokens, token, bearer, now, err) < 0) {
        token_unref (token);
        return NULL;
    }
    token_unref (*slot);
    token->refs++;
    *slot = token;
    return token;
}
