/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a server: counts its calls for memory in a file that the
 * server's processes share and the benchmark reads.  BENCH_CALLS names the
 * file; without it nothing is counted.  Allocation itself stays glibc's.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The file: so many 64-bit numbers, in the machine's own byte order. */
enum { CALLS_ALLOC = 0, CALLS_FREE, CALLS_MMAP, CALLS_N };

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *memalign(size_t, size_t);

static uint64_t unread[CALLS_N];
static uint64_t *calls = unread;

__attribute__((constructor)) static void open_file(void)
{
    const char *name = getenv("BENCH_CALLS");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    map = (void *)syscall(SYS_mmap, NULL, sizeof(unread),
                          PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
        calls = map;
    }
    close(fd);
}

static void add(int which)
{
    __atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED);
}

void *malloc(size_t n)
{
    add(CALLS_ALLOC);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    add(CALLS_ALLOC);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    add(CALLS_ALLOC);
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    add(CALLS_ALLOC);
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    *p = memalign(align, n);
    return *p ? 0 : ENOMEM;
}

void free(void *p)
{
    add(CALLS_FREE);
    __libc_free(p);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
    add(CALLS_MMAP);
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, from);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from)
{
    add(CALLS_MMAP);
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, from);
}
