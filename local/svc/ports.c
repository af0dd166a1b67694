/* Rendezvous ports: each job has one that no other live job of this site has. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local/svc/job.h"
#include "local/svc/svc_i.h"

static bool port_bindable (uint32_t port)
{
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)port),
                              .sin_addr.s_addr = htonl (INADDR_ANY)};
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int on = 1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* TIME_WAIT does not count */
    bool free_now = bind (fd, (struct sockaddr *)&any, sizeof any) == 0;
    close (fd);
    return free_now;
}

void ports_mark (struct svc *svc, uint32_t port, bool used)
{
    if (port == 0 || port > 65535)
        return;
    if (used)
        svc->port_used[port / 8] |= (uint8_t)(1u << (port % 8));
    else
        svc->port_used[port / 8] &= (uint8_t) ~(1u << (port % 8));
}

uint32_t ports_choose (struct svc *svc)
{
    const struct settings *s = svc->settings;
    for (uint32_t port = s->port_lo; port <= s->port_hi; port++)
        if (!(svc->port_used[port / 8] >> (port % 8) & 1) && port_bindable (port))
            return port;
    return 0;
}
