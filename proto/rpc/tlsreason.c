/* tlsreason: turns OpenSSL's codes and alerts into a sentence an administrator can act upon.
 * h2conn.c, envelope.c and tlsid.c call it after a failure. It decides nothing: the peer has
 * been refused already. */
#include "proto/rpc/tlsreason.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <string.h>
#include <time.h>

#include "proto/rpc/tlsid.h"

int tlsreason_of_verify (long verify, const char *who, struct err *err)
{
    const char *text;

    switch (verify) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        text = "has expired";
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        text = "is not valid yet (is a clock wrong?)";
        break;
    case X509_V_ERR_CERT_REVOKED:
        text = "was revoked";
        break;
    case X509_V_ERR_CRL_HAS_EXPIRED:
        text = "cannot be checked: the revocation list (CRL) here is out of date";
        break;
    case X509_V_ERR_CRL_NOT_YET_VALID:
        text = "cannot be checked: the revocation list (CRL) here is not valid yet";
        break;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
        text = "cannot be checked: there is no revocation list (CRL) of its issuer here";
        break;
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
        text = "cannot be checked: the revocation list (CRL) here is not signed by its issuer";
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_UNTRUSTED:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        text = "was not issued by an authority of this grid";
        break;
    case X509_V_ERR_INVALID_PURPOSE:
        text = "may not be used for this (its extended key usage lacks it)";
        break;
    case X509_V_ERR_PERMITTED_VIOLATION: /* set by tlsid: see there */
        text = "does not carry exactly one nui:// identity of this grid";
        break;
    default:
        return err_set (err, ERR_UNAUTHENTIC, "%s was refused: %s", who,
                        X509_verify_cert_error_string (verify));
    }
    return err_set (err, ERR_UNAUTHENTIC, "%s %s", who, text);
}

bool tlsreason_unchecked (long verify)
{
    return verify == X509_V_ERR_CRL_HAS_EXPIRED || verify == X509_V_ERR_CRL_NOT_YET_VALID ||
           verify == X509_V_ERR_UNABLE_TO_GET_CRL || verify == X509_V_ERR_CRL_SIGNATURE_FAILURE;
}

enum { MOMENT_MAX = 40 };

/* "" for NULL. */
static const char *moment (const ASN1_TIME *time, char out[MOMENT_MAX])
{
    struct tm tm;

    if (!time || !ASN1_TIME_to_tm (time, &tm) ||
        !strftime (out, MOMENT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
        out[0] = '\0';
    return out;
}

static const char *our_clock (char out[MOMENT_MAX])
{
    time_t now = time (NULL);
    struct tm tm;

    if (!gmtime_r (&now, &tm) || !strftime (out, MOMENT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm))
        out[0] = '\0';
    return out;
}

/* Whose clock is wrong nobody can know in a handshake: what ours shows is said. */
static int of_not_yet (const char *peer, X509 *own, struct err *err)
{
    char from[MOMENT_MAX], now[MOMENT_MAX];
    const ASN1_TIME *begin = own ? X509_get0_notBefore (own) : NULL;

    if (begin && X509_cmp_current_time (begin) > 0)
        return err_set (
            err, ERR_UNAUTHENTIC,
            "the %s refused us: our certificate is valid from %s, and our clock shows %s: is that clock slow?",
            peer, moment (begin, from), our_clock (now));
    return err_set (
        err, ERR_UNAUTHENTIC,
        "the %s refused us: our certificate is bad, or not valid yet by its clock (it is valid from %s, our clock "
        "shows %s)",
        peer, moment (begin, from), our_clock (now));
}

static int of_peers_time (long verify, const char *who, struct err *err)
{
    char now[MOMENT_MAX];

    if (verify == X509_V_ERR_CERT_HAS_EXPIRED)
        return err_set (err, ERR_UNAUTHENTIC,
                        "%s has expired, unless our clock is fast: it shows %s", who,
                        our_clock (now));
    return err_set (err, ERR_UNAUTHENTIC,
                    "%s is not valid yet, so our clock may be slow: it shows %s", who,
                    our_clock (now));
}

/* The other side told us by an alert why it does not want us. */
static int of_alert (int alert, const char *peer, X509 *own, struct err *err)
{
    char end[MOMENT_MAX];

    moment (own ? X509_get0_notAfter (own) : NULL, end);
    switch (alert) {
    case SSL_AD_CERTIFICATE_EXPIRED:
        if (own && X509_cmp_current_time (X509_get0_notAfter (own)) > 0)
            return err_set (err, ERR_UNAUTHENTIC,
                            "the %s says our certificate has expired, though it is valid until %s: "
                            "its clock or its revocation list (CRL) may be out of date",
                            peer, end);
        return err_set (err, ERR_UNAUTHENTIC, "the %s refused us: our certificate has expired (%s)",
                        peer, end);
    case SSL_AD_CERTIFICATE_REVOKED:
        return err_set (err, ERR_UNAUTHENTIC, "the %s refused us: our certificate was revoked",
                        peer);
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_DECRYPT_ERROR:
        return err_set (err, ERR_UNAUTHENTIC,
                        "the %s refused us: our certificate was not issued by an authority of its "
                        "grid",
                        peer);
    case SSL_AD_CERTIFICATE_UNKNOWN:
        return err_set (err, ERR_UNAUTHENTIC,
                        "the %s refused us: our certificate does not carry exactly one nui:// "
                        "identity of its grid",
                        peer);
    case SSL_AD_BAD_CERTIFICATE:
        return of_not_yet (peer, own, err);
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
        return err_set (err, ERR_UNAUTHENTIC,
                        "the %s refused us: our certificate may not be used for this (its extended "
                        "key usage lacks it)",
                        peer);
    case TLS13_AD_CERTIFICATE_REQUIRED:
        return err_set (err, ERR_UNAUTHENTIC, "the %s refused us: it wants a certificate", peer);
    case SSL_AD_ACCESS_DENIED:
        return err_set (err, ERR_UNAUTHENTIC, "the %s refused us: access denied", peer);
    case SSL_AD_PROTOCOL_VERSION:
        return err_set (err, ERR_UNAVAILABLE, "the %s does not speak TLS 1.3", peer);
    case SSL_AD_NO_APPLICATION_PROTOCOL:
        return err_set (err, ERR_UNAVAILABLE, "the %s does not speak HTTP/2 here", peer);
    default:
        return err_set (err, ERR_UNAVAILABLE, "the %s ended TLS: %s", peer,
                        SSL_alert_desc_string_long (alert));
    }
}

int tlsreason_of_ssl (const SSL *ssl, const char *peer, X509 *own, struct err *err)
{
    unsigned long e = ERR_peek_error ();
    int reason = ERR_GET_REASON (e);
    long verify = SSL_get_verify_result (ssl);
    char who[64];

    ERR_clear_error ();
    if (e == 0)
        return err_set (err, ERR_UNAVAILABLE, "the %s closed the connection", peer);
    if (ERR_GET_LIB (e) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET &&
        reason < SSL_AD_REASON_OFFSET + 256)
        return of_alert (reason - SSL_AD_REASON_OFFSET, peer, own, err);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verify != X509_V_OK) {
        snprintf (who, sizeof (who), "the %s's certificate", peer);
        if (verify == X509_V_ERR_CERT_HAS_EXPIRED || verify == X509_V_ERR_CERT_NOT_YET_VALID)
            return of_peers_time (verify, who, err);
        return tlsreason_of_verify (verify, who, err);
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return err_set (err, ERR_UNAUTHENTIC, "the %s sent no certificate", peer);
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        return err_set (err, ERR_UNAVAILABLE, "the %s does not speak TLS there", peer);
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return err_set (err, ERR_UNAVAILABLE, "the %s does not speak TLS 1.3", peer);
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return err_set (err, ERR_UNAVAILABLE, "the %s closed the connection", peer);
    const char *text = ERR_reason_error_string (e);
    return err_set (err, ERR_UNAVAILABLE, "TLS with the %s failed: %s", peer,
                    text ? text : "no reason given");
}
