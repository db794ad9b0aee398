/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request bodies of any bytes.  What must hold: what is found is what jansson
 * finds; a body that jansson cannot read as an object is not taken (but for
 * UTF-8 and the range of numbers); and after the splices the body says that
 * usage is wanted and which model, and everything else as it did.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "reqbody.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static int left_alone(const json_error_t *err)
{
    switch (json_error_code(err)) {
    case json_error_invalid_utf8:
    case json_error_null_character:
    case json_error_null_byte_in_key:
    case json_error_numeric_overflow:
        return 1;
    default:
        return strstr(err->text, "Unicode") != NULL
               || strstr(err->text, "too big") != NULL
               || strstr(err->text, "overflow") != NULL;
    }
}

/* The body after the splices. */
static char *spliced(const char *p, size_t n, const aigw_edit_t *edits,
                     int count, size_t *out_n)
{
    char *out = malloc(n + 200);
    size_t from = 0, w = 0;
    int i;

    for (i = 0; i < count; i++) {
        must(edits[i].at >= from && edits[i].at + edits[i].cut <= n);
        memcpy(out + w, p + from, edits[i].at - from);
        w += edits[i].at - from;
        memcpy(out + w, edits[i].put.p, edits[i].put.n);
        w += edits[i].put.n;
        from = edits[i].at + edits[i].cut;
    }
    memcpy(out + w, p + from, n - from);
    *out_n = w + n - from;
    return out;
}

static void check_spliced(json_t *before, json_t *after, int stream)
{
    json_t *was = json_object_get(before, "stream_options");
    json_t *is = json_object_get(after, "stream_options");

    must(
        strcmp(json_string_value(json_object_get(after, "model")), "our model")
        == 0);
    if (stream) {
        must(json_is_true(json_object_get(is, "include_usage")));
        if (json_is_object(was)) {
            json_object_del(was, "include_usage");
            json_object_del(is, "include_usage");
            must(json_equal(was, is));
        }
        json_object_del(after, "stream_options");
        json_object_del(before, "stream_options");
    }
    json_object_del(before, "model");
    json_object_del(after, "model");
    must(json_equal(before, after));
}

static void check_taken(const char *p, size_t n, const aigw_reqbody_t *rb,
                        json_t *json)
{
    aigw_edit_t edits[AIGW_REQBODY_EDITS];
    int count =
        aigw_reqbody_edits(rb, 1, aigw_slice("\"our model\"", 11), edits);
    json_t *model = json_object_get(json, "model");
    size_t out_n;
    char *out;

    must(count >= 1 && count <= AIGW_REQBODY_EDITS);
    out = spliced(p, n, edits, count, &out_n);
    if (json != NULL) {
        json_t *after = json_loadb(out, out_n, JSON_ALLOW_NUL, NULL);

        must(json_string_length(model) == strlen(rb->model)
             && strcmp(json_string_value(model), rb->model) == 0);
        must(json_is_true(json_object_get(json, "stream")) == rb->stream);
        must(after != NULL);
        check_spliced(json, after, rb->stream);
        json_decref(after);
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    aigw_reqbody_t rb;
    aigw_body_fault_t fault = aigw_reqbody_scan(p, size, &rb);
    json_error_t err;
    json_t *json;

    must(rb.fault_at <= size);
    if (memchr(p, '\0', size) != NULL) {
        /* jansson reads over a NUL behind a number or a word; here a NUL is
         * allowed nowhere in JSON */
        must(fault == AIGW_BODY_NOT_JSON || fault == AIGW_BODY_TOO_DEEP);
        return 0;
    }
    json = json_loadb(p, size, JSON_ALLOW_NUL, &err);
    if (fault == AIGW_BODY_OK) {
        must(json_is_object(json) || left_alone(&err));
        check_taken(p, size, &rb, json);
    }
    else if (fault == AIGW_BODY_NOT_JSON) {
        must(!json_is_object(json));
    }
    else if (fault == AIGW_BODY_NO_MODEL) {
        must(json_object_get(json, "model") == NULL);
    }
    json_decref(json);
    return 0;
}
