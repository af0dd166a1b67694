/* slurm_jwt: makes the token by which slurmrestd knows for whom a request is. slurm_rest.c calls
 * it and renews the token in time. The key is never logged, nor sent anywhere. */
#include "local/rm/slurm/slurm_jwt.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

/* RFC 4648's alphabet for URLs, without padding. */
static size_t base64url (const unsigned char *in, size_t len, char *out)
{
    int n = EVP_EncodeBlock ((unsigned char *)out, in, (int)len);
    while (n > 0 && out[n - 1] == '=')
        n--;
    out[n] = 0;
    for (int i = 0; i < n; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    return (size_t)n;
}

int slurm_jwt_make (const void *key, size_t key_len, const char *user, time_us now,
                    duration_us life, char out[SLURM_JWT_MAX], struct err *err)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    char payload[256];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int mac_len = 0;
    if (name_check ("Slurm user", user, err) != 0)
        return ERR_INVALID;
    if (key_len == 0 || key_len > SLURM_JWT_KEY_MAX)
        return err_set (err, ERR_INVALID, "Slurm's JWT key has %zu bytes, wanted 1 to %d", key_len,
                        SLURM_JWT_KEY_MAX);
    int n = snprintf (payload, sizeof payload, "{\"exp\":%lld,\"iat\":%lld,\"sun\":\"%s\"}",
                      (long long)((now + life) / US_PER_S), (long long)(now / US_PER_S), user);
    size_t at = base64url ((const unsigned char *)header, sizeof header - 1, out);
    out[at++] = '.';
    at += base64url ((const unsigned char *)payload, (size_t)n, out + at);
    if (!HMAC (EVP_sha256 (), key, (int)key_len, (const unsigned char *)out, at, mac, &mac_len))
        return err_set (err, ERR_IO, "OpenSSL could not sign a token for slurmrestd");
    out[at++] = '.';
    base64url (mac, mac_len, out + at);
    return 0;
}
