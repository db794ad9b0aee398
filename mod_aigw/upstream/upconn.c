/* SPDX-License-Identifier: Apache-2.0 */
/* See upconn.h.  Every socket call here is made with the non-blocking flag,
 * so nothing in this file can hold the thread that calls it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "upconn.h"

apr_status_t aigw_upconn_child_init(aigw_upstream_t *up, apr_pool_t *pchild)
{
    up->rt = apr_pcalloc(pchild, sizeof(*up->rt));
    up->health = &up->rt->health;
    return apr_thread_mutex_create(&up->rt->mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pchild);
}

static int open_socket(int family)
{
    int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    return fd;
}

aigw_rc_t aigw_upconn_open(aigw_upstream_t *up, const aigw_addr_t *addr,
                           aigw_upconn_t **uc, int *err)
{
    int fd = open_socket(addr->sa.ss_family);
    int rc;

    *uc = NULL;
    if (fd < 0) {
        *err = errno;
        return AIGW_FAILED;
    }
    do {
        rc = connect(fd, (const struct sockaddr *)&addr->sa, addr->len);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0 && errno != EINPROGRESS) {
        *err = errno;
        close(fd);
        return AIGW_FAILED;
    }
    *uc = calloc(1, sizeof(**uc));
    if (*uc == NULL) {
        close(fd);
        *err = ENOMEM;
        return AIGW_FAILED;
    }
    (*uc)->fd = fd;
    (*uc)->up = up;
    (*uc)->timer.index = -1;
    return rc == 0 ? AIGW_OK : AIGW_AGAIN;
}

aigw_rc_t aigw_upconn_connected(aigw_upconn_t *uc)
{
    struct pollfd p = { uc->fd, POLLOUT, 0 };
    socklen_t len = sizeof(uc->error);

    if (poll(&p, 1, 0) == 0) {
        return AIGW_AGAIN;
    }
    if (getsockopt(uc->fd, SOL_SOCKET, SO_ERROR, &uc->error, &len) < 0) {
        uc->error = errno;
    }
    return uc->error ? AIGW_FAILED : AIGW_OK;
}

aigw_rc_t aigw_upconn_handshake(aigw_upconn_t *uc, int *want)
{
    if (!uc->up->tls) {
        return AIGW_OK;
    }
    if (uc->tls == NULL) {
        uc->tls = aigw_tls_open(uc->up->tls_ctx, uc->fd);
        if (uc->tls == NULL) {
            uc->error = ENOMEM;
            return AIGW_FAILED;
        }
    }
    return aigw_tls_handshake(uc->tls, want);
}

aigw_rc_t aigw_upconn_read(aigw_upconn_t *uc, char *buf, apr_size_t size,
                           apr_size_t *n, int *want)
{
    ssize_t got;

    if (uc->tls) {
        return aigw_tls_read(uc->tls, buf, size, n, want);
    }
    do {
        got = recv(uc->fd, buf, size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *n = (apr_size_t)got;
        return AIGW_OK;
    }
    if (got == 0) {
        return AIGW_DONE;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        *want = AIGW_WANT_READ;
        return AIGW_AGAIN;
    }
    uc->error = errno;
    return AIGW_FAILED;
}

static aigw_rc_t write_plain(aigw_upconn_t *uc, const struct iovec *vec,
                             int nvec, apr_size_t *n, int *want)
{
    struct msghdr msg = { 0 };
    ssize_t put;

    msg.msg_iov = (struct iovec *)vec;
    msg.msg_iovlen = (size_t)nvec;
    do {
        put = sendmsg(uc->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put >= 0) {
        *n = (apr_size_t)put;
        return AIGW_OK;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        *want = AIGW_WANT_WRITE;
        return AIGW_AGAIN;
    }
    uc->error = errno;
    return AIGW_FAILED;
}

aigw_rc_t aigw_upconn_write(aigw_upconn_t *uc, const aigw_slice_t *piece,
                            int n_pieces, apr_size_t off, apr_size_t *n,
                            int *want)
{
    struct iovec vec[AIGW_OUT_PIECES];
    int i;

    if (uc->tls) {
        return aigw_tls_write(uc->tls, piece->p + off, piece->n - off, n,
                              want);
    }
    for (i = 0; i < n_pieces && i < AIGW_OUT_PIECES; i++) {
        vec[i].iov_base = (char *)piece[i].p + (i ? 0 : off);
        vec[i].iov_len = piece[i].n - (i ? 0 : off);
    }
    return write_plain(uc, vec, i, n, want);
}

int aigw_upconn_stale(aigw_upconn_t *uc)
{
    char c;
    ssize_t got;

    if (uc->tls) {
        return aigw_tls_stale(uc->tls);
    }
    got = recv(uc->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

const char *aigw_upconn_why(const aigw_upconn_t *uc, char *buf,
                            apr_size_t size)
{
    if (uc->tls && !uc->error) {
        return aigw_tls_why(uc->tls);
    }
    return apr_strerror(uc->error, buf, size);
}

void aigw_upconn_shut(aigw_upconn_t *uc)
{
    aigw_tls_close(uc->tls);
    uc->tls = NULL;
    close(uc->fd);
    uc->fd = -1;
}

void aigw_upconn_close(aigw_upconn_t *uc)
{
    aigw_upconn_shut(uc);
    free(uc);
}

aigw_upconn_t *aigw_upconn_sync_take(aigw_upstream_t *up, apr_time_t now)
{
    for (;;) {
        aigw_upconn_t *uc;

        apr_thread_mutex_lock(up->rt->mutex);
        uc = up->rt->sync_idle;
        if (uc) {
            up->rt->sync_idle = uc->next;
            up->rt->n_sync_idle--;
        }
        apr_thread_mutex_unlock(up->rt->mutex);
        if (uc == NULL) {
            return NULL;
        }
        uc->next = NULL;
        if (uc->idle_until > now && !aigw_upconn_stale(uc)) {
            return uc;
        }
        aigw_upconn_close(uc);
    }
}

void aigw_upconn_sync_give(aigw_upconn_t *uc, apr_time_t now)
{
    aigw_upstream_rt_t *rt = uc->up->rt;
    int full;

    uc->idle_until = now + uc->up->keepalive;
    apr_thread_mutex_lock(rt->mutex);
    full = rt->n_sync_idle >= AIGW_POOL_MAX;
    if (!full) {
        uc->next = rt->sync_idle;
        rt->sync_idle = uc;
        rt->n_sync_idle++;
    }
    apr_thread_mutex_unlock(rt->mutex);
    if (full) {
        aigw_upconn_close(uc);
    }
}
