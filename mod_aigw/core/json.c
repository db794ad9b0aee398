/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a JSON file and finding the line of a value again.  jansson does
 * not keep positions, so that the text stays beside the tree and is walked
 * once more when, and only when, an error has to be told.
 */
#include <stdlib.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include "json.h"

static apr_status_t release(void *root)
{
    json_decref(root);
    return APR_SUCCESS;
}

static apr_status_t system_error(const char *path, apr_status_t rv,
                                 apr_pool_t *pool, const char **err)
{
    char said[120];

    *err = apr_psprintf(pool, "%s: %s", path,
                        apr_strerror(rv, said, sizeof(said)));
    return rv;
}

static apr_status_t read_bytes(apr_file_t *f, const char *path, apr_size_t max,
                               apr_pool_t *pool, aigw_slice_t *text,
                               const char **err)
{
    apr_finfo_t info;
    apr_size_t got = 0;
    apr_status_t rv;
    char *bytes;

    rv = apr_file_info_get(&info, APR_FINFO_SIZE, f);
    if (rv != APR_SUCCESS) {
        return system_error(path, rv, pool, err);
    }
    if (info.size < 0 || (apr_uint64_t)info.size > max) {
        *err = apr_psprintf(pool, "%s: larger than %" APR_SIZE_T_FMT " bytes",
                            path, max);
        return APR_EINVAL;
    }
    bytes = apr_palloc(pool, (apr_size_t)info.size + 1);
    rv = apr_file_read_full(f, bytes, (apr_size_t)info.size, &got);
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return system_error(path, rv, pool, err);
    }
    bytes[got] = '\0';
    *text = aigw_slice(bytes, got);
    return APR_SUCCESS;
}

static apr_status_t read_file(aigw_slice_t *text, const char *path,
                              apr_size_t max, apr_pool_t *pool,
                              const char **err)
{
    apr_finfo_t info;
    apr_file_t *f;
    apr_status_t rv = apr_stat(&info, path, APR_FINFO_TYPE, pool);

    if (rv == APR_SUCCESS && info.filetype != APR_REG) {
        *err = apr_psprintf(pool, "%s: not a regular file", path);
        return APR_EINVAL;
    }
    if (rv == APR_SUCCESS || rv == APR_INCOMPLETE) {
        rv = apr_file_open(&f, path, APR_READ | APR_BINARY, APR_OS_DEFAULT,
                           pool);
    }
    if (rv != APR_SUCCESS) {
        return system_error(path, rv, pool, err);
    }
    rv = read_bytes(f, path, max, pool, text, err);
    apr_file_close(f);
    return rv;
}

apr_status_t aigw_json_parse(aigw_json_t *doc, const char *path,
                             aigw_slice_t text, apr_pool_t *pool,
                             const char **err)
{
    json_error_t e;

    doc->path = apr_pstrdup(pool, path);
    doc->text = text;
    doc->root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &e);
    if (!doc->root) {
        *err = apr_psprintf(pool, "%s:%d:%d: not JSON as it must be: %s", path,
                            e.line, e.column, aigw_json_quote(pool, e.text));
        return APR_EINVAL;
    }
    apr_pool_cleanup_register(pool, doc->root, release, apr_pool_cleanup_null);
    if (!json_is_object(doc->root)) {
        *err = apr_psprintf(pool,
                            "%s:1: the file must hold one JSON object "
                            "{...}; read %s",
                            path, aigw_json_say(pool, doc->root));
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

apr_status_t aigw_json_load(aigw_json_t *doc, const char *path, apr_size_t max,
                            apr_pool_t *pool, const char **err)
{
    aigw_slice_t text;
    apr_status_t rv = read_file(&text, path, max, pool, err);

    return rv == APR_SUCCESS ? aigw_json_parse(doc, path, text, pool, err)
                             : rv;
}

/* -- where a value stands ------------------------------------------------ */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n,:");
}

static const char *skip_string(const char *p)
{
    for (p++; *p != '"'; p++) {
        p += *p == '\\';
    }
    return p + 1;
}

/* The end of the value at p; the text is known to be valid. */
static const char *skip_value(const char *p)
{
    int depth = 0;

    do {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
        while (depth == 0 && *p && !strchr(" \t\r\n,:}]", *p)) {
            p++; /* the rest of a number or a word */
        }
    } while (depth > 0 && *p);
    return p;
}

static const char *find_member(const char *p, const char *key, apr_size_t n)
{
    const char *name;

    if (*p != '{') {
        return NULL;
    }
    for (p = skip_space(p + 1); *p == '"'; p = skip_space(skip_value(p))) {
        name = p + 1;
        p = skip_string(p);
        if ((apr_size_t)(p - 1 - name) == n && memcmp(name, key, n) == 0) {
            return skip_space(p);
        }
        p = skip_space(p);
    }
    return NULL;
}

static const char *find_element(const char *p, long index)
{
    if (*p != '[') {
        return NULL;
    }
    for (p = skip_space(p + 1); *p && *p != ']';
         p = skip_space(skip_value(p))) {
        if (index-- == 0) {
            return p;
        }
    }
    return NULL;
}

/* One step of a place: "[3]", "key" or ".key". */
static const char *step(const char *at, const char **place)
{
    const char *key = *place;
    apr_size_t n;
    char *end;
    long index;

    if (*key == '[') {
        index = strtol(key + 1, &end, 10);
        *place = end + (*end == ']');
        return find_element(at, index);
    }
    key += *key == '.';
    n = strcspn(key, ".[");
    *place = key + n;
    return find_member(at, key, n);
}

int aigw_json_line(const aigw_json_t *doc, const char *place)
{
    const char *at = skip_space(doc->text.p), *next, *p;
    int line = 1;

    while (*place) {
        next = step(at, &place);
        if (!next) {
            break;
        }
        at = next;
    }
    for (p = doc->text.p; p < at; p++) {
        line += *p == '\n';
    }
    return line;
}

/* -- saying what was read ------------------------------------------------ */

const char *aigw_json_quote(apr_pool_t *pool, const char *text)
{
    apr_size_t n = strlen(text), i;
    char *out = apr_palloc(pool, 88);

    n = n > 80 ? 80 : n;
    out[0] = '"';
    for (i = 0; i < n; i++) {
        out[1 + i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    }
    memcpy(out + 1 + n, text[n] ? "...\"" : "\"", text[n] ? 5 : 2);
    return out;
}

const char *aigw_json_say(apr_pool_t *pool, const json_t *value)
{
    char *text;
    const char *said;

    switch (json_typeof(value)) {
    case JSON_STRING:
        return aigw_json_quote(pool, json_string_value(value));
    case JSON_INTEGER:
    case JSON_REAL:
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        said = apr_psprintf(pool, "the number %s", text ? text : "");
        free(text);
        return said;
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_NULL:
        return "null";
    default:
        return json_is_true(value) ? "true" : "false";
    }
}
