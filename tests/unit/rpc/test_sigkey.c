#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/x509.h>

#include "proto/rpc/sigkey.h"

static const char text[] = "a job";
static const uint8_t whole[] = "nui-job-v1\0a job"; /* the domain with its NUL, the bytes */
enum { WHOLE = sizeof whole - 1 };

static EVP_PKEY *key_of (int kind)
{
    EVP_PKEY *key = kind == 0   ? EVP_EC_gen ("P-256")
                    : kind == 1 ? EVP_EC_gen ("P-384")
                                : EVP_PKEY_Q_keygen (NULL, NULL, "ED25519");
    assert_non_null (key);
    return key;
}

static const EVP_MD *digest_of (int kind)
{
    return kind == 2 ? NULL : EVP_sha256 ();
}

/* What it signs OpenSSL's own call finds good, and the other way round; many times with one key,
 * also after one that was not good. */
static void test_as_openssl (void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        EVP_PKEY *key = key_of (kind);
        struct sigkey *k = sigkey_create (key);
        uint8_t sig[SIGKEY_SIGNATURE_MAX];
        size_t len;
        struct err err = {0};
        for (int i = 0; i < 3; i++) {
            EVP_MD_CTX *ctx = EVP_MD_CTX_new ();
            assert_int_equal (sigkey_sign (k, "nui-job-v1", text, 5, sig, &len, &err), 0);
            assert_int_equal (EVP_DigestVerifyInit (ctx, NULL, digest_of (kind), NULL, key), 1);
            assert_int_equal (EVP_DigestVerify (ctx, sig, len, whole, WHOLE), 1);
            EVP_MD_CTX_reset (ctx);
            len = sizeof sig;
            assert_int_equal (EVP_DigestSignInit (ctx, NULL, digest_of (kind), NULL, key), 1);
            assert_int_equal (EVP_DigestSign (ctx, sig, &len, whole, WHOLE), 1);
            EVP_MD_CTX_free (ctx);
            assert_int_equal (sigkey_verify (k, "nui-job-v1", text, 5, sig, len, &err), 0);
            assert_int_equal (sigkey_verify (k, "nui-job-v1", text, 4, sig, len, &err),
                              ERR_UNAUTHENTIC);
            assert_string_equal (err.text, "the signature does not fit the content");
            assert_int_equal (sigkey_verify (k, "nui-job-v2", text, 5, sig, len, &err),
                              ERR_UNAUTHENTIC);
            assert_int_equal (sigkey_verify (k, "nui-job-v1", text, 5, sig, len - 1, &err),
                              ERR_UNAUTHENTIC);
            assert_int_equal (sigkey_verify (k, "nui-job-v1", text, 5, sig, len, &err), 0);
        }
        sigkey_destroy (k);
        EVP_PKEY_free (key);
    }
}

static void test_other_key (void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        EVP_PKEY *mine = key_of (kind), *other = key_of (kind);
        struct sigkey *a = sigkey_create (mine), *b = sigkey_create (other);
        uint8_t sig[SIGKEY_SIGNATURE_MAX];
        size_t len;
        struct err err = {0};
        EVP_PKEY_free (mine); /* each holds its own reference */
        EVP_PKEY_free (other);
        assert_int_equal (sigkey_sign (a, "d", text, 5, sig, &len, &err), 0);
        assert_int_equal (sigkey_verify (b, "d", text, 5, sig, len, &err), ERR_UNAUTHENTIC);
        assert_int_equal (sigkey_verify (a, "d", text, 5, sig, len, &err), 0);
        sigkey_destroy (a);
        sigkey_destroy (b);
    }
}

/* The part that a certificate has: checks, and cannot sign. */
static void test_public_part (void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        EVP_PKEY *key = key_of (kind);
        uint8_t *der = NULL, sig[SIGKEY_SIGNATURE_MAX];
        int der_len = i2d_PUBKEY (key, &der);
        const uint8_t *at = der;
        EVP_PKEY *public = d2i_PUBKEY (NULL, &at, der_len);
        struct sigkey *a = sigkey_create (key), *b = sigkey_create (public);
        size_t len;
        struct err err = {0};
        assert_int_equal (sigkey_sign (b, "d", text, 5, sig, &len, &err), ERR_INTERNAL);
        assert_int_equal (sigkey_sign (a, "d", text, 5, sig, &len, &err), 0);
        assert_int_equal (sigkey_verify (b, "d", text, 5, sig, len, &err), 0);
        sigkey_destroy (a);
        sigkey_destroy (b);
        EVP_PKEY_free (key);
        EVP_PKEY_free (public);
        OPENSSL_free (der);
    }
}

static void test_unsupported (void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_PKEY_Q_keygen (NULL, NULL, "RSA", (size_t)2048);
    struct sigkey *k = sigkey_create (key);
    uint8_t sig[SIGKEY_SIGNATURE_MAX] = {0};
    size_t len;
    struct err err = {0};
    assert_int_equal (sigkey_sign (k, "d", text, 5, sig, &len, &err), ERR_UNSUPPORTED);
    assert_int_equal (sigkey_verify (k, "d", text, 5, sig, 256, &err), ERR_UNSUPPORTED);
    assert_string_equal (err.text, "signature: the key is neither Ed25519 nor ECDSA");
    sigkey_destroy (k);
    sigkey_destroy (NULL);
    EVP_PKEY_free (key);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_as_openssl),
        cmocka_unit_test (test_other_key),
        cmocka_unit_test (test_public_part),
        cmocka_unit_test (test_unsupported),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
