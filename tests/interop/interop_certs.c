/* interop_certs DIR: an authority and certificates for the pairings: alpha (a site, also
 * localhost), alice (a user), op (an operator), and mallory of another authority. */
#include "tests/interop/testca.h"

#include <stdio.h>

int main (int argc, char **argv)
{
    if (argc != 2) {
        fprintf (stderr, "usage: interop_certs DIR\n");
        return 2;
    }
    struct testca *ca = testca_create (argv[1], "ca");
    struct testca *ca2 = testca_create (argv[1], "ca2");
    testca_issue (ca, &(struct testca_cert){
                          .name = "alpha", .uri = "nui://test/site/alpha", .dns_localhost = true});
    testca_issue (ca, &(struct testca_cert){.name = "alice", .uri = "nui://test/user/alice"});
    testca_issue (ca, &(struct testca_cert){.name = "op", .uri = "nui://test/operator/op"});
    testca_issue (ca2, &(struct testca_cert){.name = "mallory", .uri = "nui://test/user/alice"});
    testca_destroy (ca);
    testca_destroy (ca2);
    return 0;
}
