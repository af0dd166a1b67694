/* When certificates and revocation lists end. Whoever warns of it, or remembers a chain as good for so long, asks here. */
#include <time.h>

#include "proto/rpc/tlsid.h"

time_us tlsend_moment (const ASN1_TIME *text)
{
    struct tm tm;

    if (!text || ASN1_TIME_to_tm (text, &tm) != 1)
        return 0;
    time_t seconds = timegm (&tm);
    return seconds > 0 && seconds < INT64_MAX / US_PER_S ? seconds * US_PER_S : 0;
}

time_us tlsid_cert_end (struct tlsid *id)
{
    return tlsend_moment (X509_get0_notAfter (sk_X509_value (tlsid_chain (id), 0)));
}

time_us tlsid_crl_end (struct tlsid *id)
{
    STACK_OF (X509_OBJECT) *objects = X509_STORE_get0_objects (tlsid_store (id));
    time_us first = 0;

    for (int i = 0; i < sk_X509_OBJECT_num (objects); i++) {
        X509_CRL *crl = X509_OBJECT_get0_X509_CRL (sk_X509_OBJECT_value (objects, i));
        time_us end = crl ? tlsend_moment (X509_CRL_get0_nextUpdate (crl)) : 0;
        if (end > 0 && (first == 0 || end < first))
            first = end;
    }
    return first;
}
