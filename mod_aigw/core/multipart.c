/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar is RFC 7578 without its freedoms: CRLF, "--", the boundary and
 * CRLF between parts, a head of fields with exactly one Content-Disposition,
 * "--" and at most one CRLF behind the last boundary.
 */
#include "multipart.h"

static int is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9')
           || (c != '\0' && strchr("!#$&'*+-.^_`|~", c) != NULL);
}

/* Those of RFC 2046 but for the space. */
static int is_boundary_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9')
           || (c != '\0' && strchr("'()+_,-./:=?", c) != NULL);
}

static aigw_slice_t take_token(const char **p, const char *end)
{
    const char *start = *p;

    while (*p < end && is_token_char(**p)) {
        ++*p;
    }
    return aigw_slice(start, (apr_size_t)(*p - start));
}

static void skip_blanks(const char **p, const char *end)
{
    while (*p < end && (**p == ' ' || **p == '\t')) {
        ++*p;
    }
}

/* ---- parameters: "; name=value" ----------------------------------------- */

/* A value in quotes: no escapes, as readers differ about them. */
static aigw_rc_t take_quoted(const char **p, const char *end,
                             aigw_slice_t *value)
{
    const char *start = ++*p;

    while (*p < end && **p != '"') {
        if (**p == '\\' || (unsigned char)**p < 0x20 || **p == 0x7f) {
            return AIGW_MALFORMED;
        }
        ++*p;
    }
    if (*p == end) {
        return AIGW_MALFORMED;
    }
    *value = aigw_slice(start, (apr_size_t)(*p - start));
    ++*p;
    return AIGW_OK;
}

/* The next parameter. AIGW_DONE: there is none. */
static aigw_rc_t take_parameter(const char **p, const char *end,
                                aigw_slice_t *name, aigw_slice_t *value)
{
    skip_blanks(p, end);
    if (*p == end) {
        return AIGW_DONE;
    }
    if (**p != ';') {
        return AIGW_MALFORMED;
    }
    ++*p;
    skip_blanks(p, end);
    *name = take_token(p, end);
    if (name->n == 0 || *p == end || **p != '=') {
        return AIGW_MALFORMED;
    }
    ++*p;
    if (*p < end && **p == '"') {
        return take_quoted(p, end, value);
    }
    *value = aigw_slice(*p, 0);
    while (*p < end
           && (is_token_char(**p) || is_boundary_char(**p) || **p == '%')) {
        ++*p;
    }
    value->n = (apr_size_t)(*p - value->p);
    return value->n > 0 ? AIGW_OK : AIGW_MALFORMED;
}

/* ---- the boundary ------------------------------------------------------- */

static const char form[] = "multipart/form-data";

int aigw_multipart_is(const char *type)
{
    apr_size_t n = sizeof(form) - 1;

    return type != NULL && strlen(type) >= n
           && aigw_slice_is_nocase(aigw_slice(type, n), form)
           && (type[n] == '\0' || strchr("; \t", type[n]) != NULL);
}

static int is_boundary(aigw_slice_t s)
{
    apr_size_t i;

    for (i = 0; i < s.n; ++i) {
        if (!is_boundary_char(s.p[i])) {
            return 0;
        }
    }
    return s.n > 0 && s.n <= 70;
}

static aigw_rc_t find_boundary(const char *type, aigw_slice_t *boundary)
{
    const char *p = type + sizeof(form) - 1;
    const char *end = type + strlen(type);
    aigw_slice_t name, value;
    aigw_rc_t rc;

    boundary->n = 0;
    while ((rc = take_parameter(&p, end, &name, &value)) == AIGW_OK) {
        if (aigw_slice_is_nocase(name, "boundary")) {
            if (boundary->n > 0 || !is_boundary(value)) {
                return AIGW_MALFORMED;
            }
            *boundary = value;
        }
    }
    return rc == AIGW_DONE && boundary->n > 0 ? AIGW_OK : AIGW_MALFORMED;
}

/* 1 if a boundary's line begins at @a p. */
static int is_delimiter(const aigw_multipart_t *mp, const char *p)
{
    return (apr_size_t)(mp->end - p) >= mp->boundary.n + 2
           && memcmp(p, "--", 2) == 0
           && memcmp(p + 2, mp->boundary.p, mp->boundary.n) == 0;
}

aigw_rc_t aigw_multipart_start(aigw_multipart_t *mp, const char *type,
                               const char *body, apr_size_t n)
{
    memset(mp, 0, sizeof(*mp));
    if (!aigw_multipart_is(type)
        || find_boundary(type, &mp->boundary) != AIGW_OK) {
        return AIGW_MALFORMED;
    }
    mp->end = body + n;
    if (!is_delimiter(mp, body)) {
        return AIGW_MALFORMED;
    }
    mp->p = body + 2 + mp->boundary.n;
    return AIGW_OK;
}

/* ---- the head of a part ------------------------------------------------- */

static int is_text(aigw_slice_t s)
{
    apr_size_t i;

    for (i = 0; i < s.n; ++i) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return 0;
        }
    }
    return 1;
}

/* A line without its CRLF; AIGW_AGAIN: there is none. */
static aigw_rc_t take_line(const char **p, const char *end, aigw_slice_t *line)
{
    const char *cr = memchr(*p, '\r', (apr_size_t)(end - *p));

    if (cr == NULL || cr + 1 == end) {
        return AIGW_AGAIN;
    }
    if (cr[1] != '\n') {
        return AIGW_MALFORMED;
    }
    *line = aigw_slice(*p, (apr_size_t)(cr - *p));
    *p = cr + 2;
    return is_text(*line) ? AIGW_OK : AIGW_MALFORMED;
}

static aigw_rc_t take_disposition(const char *p, const char *end,
                                  aigw_multipart_part_t *part)
{
    aigw_slice_t name, value;
    aigw_rc_t rc;

    if (part->name.p != NULL
        || !aigw_slice_is_nocase(take_token(&p, end), "form-data")) {
        return AIGW_MALFORMED;
    }
    while ((rc = take_parameter(&p, end, &name, &value)) == AIGW_OK) {
        if (aigw_slice_is_nocase(name, "name")) {
            if (part->name.p != NULL
                || memchr(value.p, '%', value.n) != NULL) {
                return AIGW_MALFORMED;
            }
            part->name = value;
        }
        else if (aigw_slice_is_nocase(name, "filename")
                 || aigw_slice_is_nocase(name, "filename*")) {
            part->file = 1;
        }
        else {
            return AIGW_MALFORMED;
        }
    }
    return rc == AIGW_DONE && part->name.p != NULL ? AIGW_OK : AIGW_MALFORMED;
}

/* Bytes are what they are: no coding, and no form inside the form. */
static aigw_rc_t take_field(aigw_slice_t line, aigw_multipart_part_t *part)
{
    const char *p = line.p;
    const char *end = p + line.n;
    aigw_slice_t name = take_token(&p, end), value;

    /* A line that begins with a dash is a boundary's to some readers. */
    if (name.n == 0 || *name.p == '-' || p == end || *p != ':') {
        return AIGW_MALFORMED;
    }
    ++p;
    skip_blanks(&p, end);
    if (aigw_slice_is_nocase(name, "Content-Disposition")) {
        return take_disposition(p, end, part);
    }
    value = aigw_slice(p, (apr_size_t)(end - p));
    if (aigw_slice_is_nocase(name, "Content-Type")) {
        return value.n >= 10
                       && aigw_slice_is_nocase(aigw_slice(p, 10), "multipart/")
                   ? AIGW_MALFORMED
                   : AIGW_OK;
    }
    if (aigw_slice_is_nocase(name, "Content-Transfer-Encoding")) {
        return aigw_slice_is_nocase(value, "binary")
                       || aigw_slice_is_nocase(value, "8bit")
                       || aigw_slice_is_nocase(value, "7bit")
                   ? AIGW_OK
                   : AIGW_MALFORMED;
    }
    return AIGW_OK;
}

static aigw_rc_t take_head(aigw_multipart_t *mp, aigw_multipart_part_t *part)
{
    apr_size_t left = (apr_size_t)(mp->end - mp->p);
    const char *end =
        left > AIGW_MULTIPART_HEAD ? mp->p + AIGW_MULTIPART_HEAD : mp->end;
    aigw_slice_t line;
    aigw_rc_t rc;

    while ((rc = take_line(&mp->p, end, &line)) == AIGW_OK && line.n > 0) {
        if (take_field(line, part) != AIGW_OK) {
            return AIGW_MALFORMED;
        }
    }
    if (rc == AIGW_AGAIN && end < mp->end) {
        return AIGW_TOO_BIG;
    }
    return rc == AIGW_OK && part->name.p != NULL ? AIGW_OK : AIGW_MALFORMED;
}

/* ---- the value of a part ------------------------------------------------ */

/* The CRLF before the next boundary; NULL if there is none. */
static const char *find_delimiter(const aigw_multipart_t *mp)
{
    const char *p = mp->p;
    apr_size_t need = mp->boundary.n + 4;

    while ((apr_size_t)(mp->end - p) >= need
           && (p = memchr(p, '\r', (apr_size_t)(mp->end - p) - need + 1))
                  != NULL) {
        if (p[1] == '\n' && is_delimiter(mp, p + 2)) {
            return p;
        }
        ++p;
    }
    return NULL;
}

/* Behind a boundary: AIGW_OK a part follows, AIGW_DONE the body ends. */
static aigw_rc_t after_boundary(aigw_multipart_t *mp)
{
    apr_size_t left = (apr_size_t)(mp->end - mp->p);

    if (left >= 2 && memcmp(mp->p, "\r\n", 2) == 0) {
        mp->p += 2;
        return AIGW_OK;
    }
    if ((left == 2 && memcmp(mp->p, "--", 2) == 0)
        || (left == 4 && memcmp(mp->p, "--\r\n", 4) == 0)) {
        return AIGW_DONE;
    }
    return AIGW_MALFORMED;
}

aigw_rc_t aigw_multipart_next(aigw_multipart_t *mp,
                              aigw_multipart_part_t *part)
{
    const char *delimiter;
    aigw_rc_t rc = after_boundary(mp);

    if (rc != AIGW_OK) {
        return rc;
    }
    if (++mp->parts > AIGW_MULTIPART_PARTS) {
        return AIGW_TOO_BIG;
    }
    memset(part, 0, sizeof(*part));
    rc = take_head(mp, part);
    if (rc != AIGW_OK) {
        return rc;
    }
    /* A boundary right behind the head: to some readers it ends the part. */
    delimiter = is_delimiter(mp, mp->p) ? NULL : find_delimiter(mp);
    if (delimiter == NULL) {
        return AIGW_MALFORMED;
    }
    part->value = aigw_slice(mp->p, (apr_size_t)(delimiter - mp->p));
    mp->p = delimiter + 4 + mp->boundary.n;
    return AIGW_OK;
}
