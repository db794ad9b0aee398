/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See url.h.  It refuses what it could repair: a dot segment, an escape or
 * an empty segment in a configured URL is a typing mistake, and mending it
 * would send requests to a place nobody wrote down.
 */
#include "url.h"

#include <arpa/inet.h>
#include <string.h>
#include <apr_cstr.h>
#include <apr_lib.h>
#include <apr_strings.h>

#define HOST_MAX 253

static const char *read_scheme(const char *text, aigw_url_t *out)
{
    if (apr_cstr_casecmpn(text, "https://", 8) == 0) {
        out->tls = 1;
        out->port = 443;
        return text + 8;
    }
    if (apr_cstr_casecmpn(text, "http://", 7) == 0) {
        out->tls = 0;
        out->port = 80;
        return text + 7;
    }
    return NULL;
}

static int is_ip(int family, const char *host)
{
    unsigned char addr[sizeof(struct in6_addr)];
    return inet_pton(family, host, addr) == 1;
}

/* A host name, or an IPv4 address.  Digits and dots that are not four
 * numbers ("127.1") mean different hosts to different readers. */
static int host_ok(const char *host)
{
    const char *p, *last;

    if (!*host || strlen(host) > HOST_MAX || strstr(host, "..") || *host == '.'
        || *host == '-') {
        return 0;
    }
    for (p = host; *p; p++) {
        if (!apr_isascii(*p)
            || !(apr_isalnum(*p) || strchr("-._", *p) != NULL)) {
            return 0;
        }
    }
    last = strrchr(host, '.');
    last = last ? last + 1 : host;
    return last[strspn(last, "0123456789")] ? 1 : is_ip(AF_INET, host);
}

static const char *read_port(const char *text, apr_port_t *port)
{
    unsigned n = 0;
    const char *p;

    for (p = text; *p >= '0' && *p <= '9' && n <= 65535; p++) {
        n = n * 10 + (unsigned)(*p - '0');
    }
    if (p == text || *p || n < 1 || n > 65535) {
        return "its port is not a number from 1 to 65535";
    }
    *port = (apr_port_t)n;
    return NULL;
}

/* [address] with an optional port behind it. */
static const char *read_bracketed(char *text, aigw_url_t *out)
{
    char *end = strchr(text, ']');

    if (end) {
        *end = '\0';
    }
    if (!end || !is_ip(AF_INET6, text + 1)) {
        return "its host is not an IPv6 address in brackets, such as "
               "http://[::1]:8000/v1";
    }
    out->host = text + 1;
    if (end[1] == '\0') {
        return NULL;
    }
    return end[1] == ':' ? read_port(end + 2, &out->port)
                         : "its host is followed by something that is not "
                           "a port";
}

static const char *read_authority(char *text, aigw_url_t *out)
{
    char *colon;

    if (strchr(text, '@')) {
        return "it holds a user name or a password; the account's key is "
               "given by key=file:PATH";
    }
    for (colon = text; *colon; colon++) {
        *colon = (char)apr_tolower(*colon);
    }
    if (*text == '[') {
        return read_bracketed(text, out);
    }
    colon = strchr(text, ':');
    if (colon) {
        *colon = '\0';
    }
    if (!host_ok(text)) {
        return "its host is not a host name or an IP address";
    }
    out->host = text;
    return colon ? read_port(colon + 1, &out->port) : NULL;
}

static const char *check_path(const char *path)
{
    const char *p;

    for (p = path; *p; p++) {
        if (!apr_isascii(*p)
            || !(apr_isalnum(*p) || strchr("/-._~!$&'()*+,;=:@", *p))) {
            return "its path holds a character that is not allowed "
                   "(allowed are letters, digits and -._~!$&'()*+,;=:@/)";
        }
        if (*p == '/'
            && (p[1] == '/' || !p[1] || (p[1] == '.' && (p[2] == '/' || !p[2]))
                || (p[1] == '.' && p[2] == '.' && (p[3] == '/' || !p[3])))) {
            return "its path holds an empty segment, '.' or '..'";
        }
    }
    return NULL;
}

static const char *make_host_field(const aigw_url_t *url, apr_pool_t *pool)
{
    int v6 = strchr(url->host, ':') != NULL;
    const char *host =
        v6 ? apr_pstrcat(pool, "[", url->host, "]", NULL) : url->host;

    if (url->port == (url->tls ? 443 : 80)) {
        return host;
    }
    return apr_psprintf(pool, "%s:%u", host, (unsigned)url->port);
}

const char *aigw_url_parse(const char *text, aigw_url_t *out, apr_pool_t *pool)
{
    const char *rest = read_scheme(text, out), *fault;
    char *path;
    apr_size_t n;

    if (!rest) {
        return "it does not start with https:// or http://";
    }
    n = strcspn(rest, "/?#");
    fault = read_authority(apr_pstrmemdup(pool, rest, n), out);
    if (fault) {
        return fault;
    }
    path = apr_pstrdup(pool, rest + n);
    if (strpbrk(path, "?#")) {
        return "it holds a query or a fragment";
    }
    n = strlen(path);
    if (n > 0 && path[n - 1] == '/') {
        path[n - 1] = '\0';
    }
    out->path = path;
    out->host_field = make_host_field(out, pool);
    return check_path(path);
}

const char *aigw_url_shown(apr_pool_t *pool, const char *text)
{
    char *shown = apr_pstrmemdup(pool, text, strcspn(text, "?#"));
    char *at = strrchr(shown, '@');
    const char *host = strstr(shown, "//");

    if (!at) {
        return shown;
    }
    return apr_pstrcat(pool,
                       host && host < at
                           ? apr_pstrmemdup(pool, shown,
                                            (apr_size_t)(host + 2 - shown))
                           : "",
                       "...", at, NULL);
}
