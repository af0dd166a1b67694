/* memfile: bytes as a file with a path, without a disk. */
#ifndef NUI_TEST_FUZZ_SIM_MEMFILE_H
#define NUI_TEST_FUZZ_SIM_MEMFILE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns the descriptor, to be closed; path gets its name. */
static inline int memfile (const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create ("fuzz", MFD_CLOEXEC);
    assert (fd >= 0);
    assert (write (fd, data, size) == (ssize_t)size);
    snprintf (path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
