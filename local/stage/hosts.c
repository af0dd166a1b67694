/* hosts: parses STAGEHOSTS, and judges a host's name and the address of a connection. rules.c
 * and settings call it with names, request.c with each address before connecting. It asks no
 * name server: a name that is allowed may still lead to an address that is not. */
#include "local/stage/hosts.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/quantity.h"

/* IPv4 as IPv4-mapped IPv6. */
struct net {
    uint8_t address[16];
    unsigned bits;
};

struct entry {
    char *pattern; /* NULL: a net */
    struct net net;
    bool deny;
};

struct hosts {
    struct entry *entry;
    uint32_t count;
};

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool address_parse (const char *text, uint8_t out[16], bool *v4_out)
{
    memcpy (out, mapped, sizeof mapped);
    *v4_out = inet_pton (AF_INET, text, out + 12) == 1;
    return *v4_out || inet_pton (AF_INET6, text, out) == 1;
}

/* "192.0.2.0/24", "::1". False: no address at all. */
static bool net_parse (const char *text, struct net *out, struct err *err, int *rc_out)
{
    char address[INET6_ADDRSTRLEN + 1];
    size_t len = strcspn (text, "/");
    bool v4;
    *rc_out = 0;
    if (len >= sizeof address)
        return false;
    memcpy (address, text, len);
    address[len] = 0;
    if (!address_parse (address, out->address, &v4))
        return false;
    unsigned most = v4 ? 32 : 128;
    uint64_t bits = most;
    if (text[len] && uint_parse (text + len + 1, "length", 0, most, &bits, NULL) != 0)
        *rc_out = err_set (err, ERR_INVALID, "host '%s': wanted at most /%u", text, most);
    out->bits = (unsigned)bits + (v4 ? 96 : 0);
    return true;
}

static bool net_holds (const struct net *net, const uint8_t address[16])
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp (net->address, address, whole) == 0 &&
           (rest == 0 || ((net->address[whole] ^ address[whole]) & mask) == 0);
}

int hosts_parse (const char *const *entry, uint32_t count, struct hosts **out, struct err *err)
{
    if (count > HOSTS_MAX)
        return err_set (err, ERR_LIMIT, "%u hosts, at most %d", count, HOSTS_MAX);
    struct hosts *h = calloc (1, sizeof *h);
    assert (h);
    h->entry = calloc (count + 1, sizeof *h->entry);
    assert (h->entry);
    for (uint32_t i = 0; i < count; i++) {
        struct entry *e = &h->entry[h->count++];
        const char *text = entry[i];
        int rc;
        e->deny = *text == '!';
        text += e->deny;
        if (!net_parse (text, &e->net, err, &rc)) {
            e->pattern = strdup (text);
            assert (e->pattern);
            if (!*text || strpbrk (text, "/ \t"))
                rc = err_set (err, ERR_INVALID, "host '%s': wanted a name, a pattern or a network",
                              entry[i]);
        }
        if (rc != 0) {
            hosts_free (h);
            return rc;
        }
    }
    *out = h;
    return 0;
}

void hosts_free (struct hosts *h)
{
    if (!h)
        return;
    for (uint32_t i = 0; i < h->count; i++)
        free (h->entry[i].pattern);
    free (h->entry);
    free (h);
}

static bool address_of (const struct sockaddr *from, uint8_t out[16])
{
    memcpy (out, mapped, sizeof mapped);
    if (from->sa_family == AF_INET)
        memcpy (out + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from->sa_family == AF_INET6)
        memcpy (out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    return from->sa_family == AF_INET || from->sa_family == AF_INET6;
}

/* Networks that are no part of the public Internet (IANA's special-purpose registries, RFC 6890).
 */
static bool inner (const uint8_t address[16])
{
    static const char *const nets[] = {
        "0.0.0.0/8",      "10.0.0.0/8",    "100.64.0.0/10",  "127.0.0.0/8",
        "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15",
        "224.0.0.0/3",    "::/96",         "64:ff9b::/96",   "64:ff9b:1::/48",
        "2002::/16",      "fc00::/7",      "fe80::/9",       "ff00::/8",
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct net net;
        int rc;
        bool parsed = net_parse (nets[i], &net, NULL, &rc);
        assert (parsed && rc == 0);
        if (net_holds (&net, address))
            return true;
    }
    return false;
}

int hosts_check (const struct hosts *h, const char *name, const struct sockaddr *address,
                 struct err *err)
{
    uint8_t bytes[16];
    bool v4, allowed = h->count == 0, named = false, later = false;
    if (address && !address_of (address, bytes))
        return err_set (err, ERR_DENIED, "%s has an address of an unknown kind", name);
    bool known = address || address_parse (name, bytes, &v4);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct entry *e = &h->entry[i];
        bool fits = e->pattern ? fnmatch (e->pattern, name, FNM_CASEFOLD) == 0
                               : known && net_holds (&e->net, bytes);
        later |= !e->pattern && !known && !e->deny;
        if (!fits)
            continue;
        if (e->deny)
            return err_set (err, ERR_DENIED, "the site exchanges no files with host %s", name);
        allowed = true;
        named = !e->pattern || strspn (e->pattern, "*?.") < strlen (e->pattern);
        break;
    }
    if (!allowed && !later)
        return err_set (err, ERR_DENIED, "the site exchanges no files with host %s", name);
    if (known && !named && inner (bytes))
        return err_set (
            err, ERR_DENIED,
            "host %s has an address of a private network, with which the site exchanges no files",
            name);
    return 0;
}
