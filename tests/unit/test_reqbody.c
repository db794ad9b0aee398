/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request bodies: what is found in them, what is refused, and that the
 * splices leave every other byte alone and valid JSON behind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>
#include "reqbody.h"

/* Scan a copy of exactly that size. */
static aigw_body_fault_t scan_n(const char *text, size_t n,
                                aigw_reqbody_t *rb)
{
    char *copy = malloc(n);
    aigw_body_fault_t fault;

    memcpy(copy, text, n);
    fault = aigw_reqbody_scan(copy, n, rb);
    free(copy);
    return fault;
}

static aigw_body_fault_t scan(const char *text, aigw_reqbody_t *rb)
{
    return scan_n(text, strlen(text), rb);
}

static void assert_fault(const char *text, aigw_body_fault_t want,
                         size_t at)
{
    aigw_reqbody_t rb;
    aigw_body_fault_t fault = scan(text, &rb);

    if (fault != want || rb.fault_at != at) {
        fail_msg("%s: fault %d at %d (wanted %d at %d)", text, (int)fault,
                 (int)rb.fault_at, (int)want, (int)at);
    }
}

/* The body after the splices, with a model of ours if @a rename.
 * @return how many they were */
static int splice(const char *text, int ask, const char *rename, char *out)
{
    aigw_reqbody_t rb;
    aigw_edit_t edits[AIGW_REQBODY_EDITS];
    aigw_slice_t name = {NULL, 0};
    size_t from = 0;
    int n, i;

    assert_int_equal(scan(text, &rb), AIGW_BODY_OK);
    if (rename != NULL) {
        name = aigw_slice(rename, strlen(rename));
    }
    n = aigw_reqbody_edits(&rb, ask, name, edits);
    assert_in_range(n, 0, AIGW_REQBODY_EDITS);
    for (i = 0; i < n; ++i) {
        assert_true(edits[i].at >= from);
        memcpy(out, text + from, edits[i].at - from);
        out += edits[i].at - from;
        memcpy(out, edits[i].put.p, edits[i].put.n);
        out += edits[i].put.n;
        from = edits[i].at + edits[i].cut;
    }
    memcpy(out, text + from, strlen(text) + 1 - from);
    return n;
}

static void assert_splice(const char *text, int ask, const char *rename,
                          const char *want)
{
    char out[2048];
    json_t *json;

    assert_int_equal(splice(text, ask, rename, out) == 0,
                     strcmp(text, want) == 0);
    assert_string_equal(out, want);
    json = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    if (ask && json_is_true(json_object_get(json, "stream"))) {
        assert_true(json_is_true(json_object_get(
            json_object_get(json, "stream_options"), "include_usage")));
    }
    json_decref(json);
}

static void model_and_stream_are_found_at_depth_one_only(void **state)
{
    aigw_reqbody_t rb;

    (void)state;
    assert_int_equal(
        scan("{\"messages\":[{\"model\":\"no\",\"stream\":true}],"
             "\"tools\":{\"stream\":true,\"stream_options\":{}},"
             "\"x\":\"\\\"stream\\\":true\",\"model\":\"yes\"}", &rb),
        AIGW_BODY_OK);
    assert_string_equal(rb.model, "yes");
    assert_int_equal(rb.stream, 0);
    assert_int_equal(rb.include_usage, -1);
    assert_int_equal(rb.options_len, 0);

    assert_int_equal(scan(" {\"stream\" : true , \"model\":\"m\"} ", &rb),
                     AIGW_BODY_OK);
    assert_int_equal(rb.stream, 1);
    assert_int_equal(rb.object_at, 2);
    assert_int_equal(scan("{\"stream\":false,\"model\":\"m\"}", &rb),
                     AIGW_BODY_OK);
    assert_int_equal(rb.stream, 0);
    assert_int_equal(scan("{\"stream\":null,\"model\":\"m\"}", &rb),
                     AIGW_BODY_OK);
    assert_int_equal(rb.stream, 0);
}

static void places_point_at_the_values(void **state)
{
    static const char text[] =
        "{\"model\": \"a\\u0062\" ,\"stream_options\" : "
        "{ \"include_usage\" : false , \"z\":[{}] } }";
    aigw_reqbody_t rb;

    (void)state;
    assert_int_equal(scan(text, &rb), AIGW_BODY_OK);
    assert_string_equal(rb.model, "ab");
    assert_int_equal(rb.model_len, 9);
    assert_memory_equal(text + rb.model_at, "\"a\\u0062\"", 9);
    assert_memory_equal(text + rb.options_at, "{ \"include", 10);
    assert_int_equal(text[rb.options_at + rb.options_len - 1], '}');
    assert_int_equal(text[rb.options_at + rb.options_len], ' ');
    assert_int_equal(rb.options_at + rb.options_len, sizeof(text) - 3);
    assert_int_equal(rb.include_len, 5);
    assert_memory_equal(text + rb.include_at, "false", 5);
    assert_int_equal(rb.include_usage, 0);
    assert_int_equal(rb.options_empty, 0);
    assert_int_equal(rb.object_at, 1);
}

static void a_body_that_is_not_one_json_object_is_refused(void **state)
{
    (void)state;
    assert_fault("", AIGW_BODY_NOT_JSON, 0);
    assert_fault("  ", AIGW_BODY_NOT_JSON, 2);
    assert_fault("[]", AIGW_BODY_NOT_JSON, 0);
    assert_fault(" \"model\"", AIGW_BODY_NOT_JSON, 1);
    assert_fault("null", AIGW_BODY_NOT_JSON, 0);
    assert_fault("12", AIGW_BODY_NOT_JSON, 0);
    assert_fault("{\"model\":\"m\"", AIGW_BODY_NOT_JSON, 12);
    assert_fault("{\"model\":\"m\"}}", AIGW_BODY_NOT_JSON, 13);
    assert_fault("{\"model\":\"m\"}{}", AIGW_BODY_NOT_JSON, 13);
    assert_fault("{\"model\":\"m\",}", AIGW_BODY_NOT_JSON, 13);
    assert_fault("{\"model\":\"m\",\"a\":01}", AIGW_BODY_NOT_JSON, 18);
    assert_fault("{'model':'m'}", AIGW_BODY_NOT_JSON, 1);
    assert_fault("\xef\xbb\xbf{\"model\":\"m\"}", AIGW_BODY_NOT_JSON, 0);
    assert_fault("model=m&stream=true", AIGW_BODY_NOT_JSON, 0);
    /* a fault of meaning before it does not hide it */
    assert_fault("{\"model\":1,\"model\":2,", AIGW_BODY_NOT_JSON, 21);
}

static void a_key_of_ours_that_comes_twice_is_refused(void **state)
{
    (void)state;
    assert_fault("{\"model\":\"a\",\"model\":\"b\"}", AIGW_BODY_DUPLICATE,
                 21);
    assert_fault("{\"model\":\"a\",\"\\u006dodel\":\"a\"}",
                 AIGW_BODY_DUPLICATE, 26);
    assert_fault("{\"stream\":true,\"stream\":true,\"model\":\"a\"}",
                 AIGW_BODY_DUPLICATE, 24);
    assert_fault("{\"stream\":false,\"stre\\u0061m\":null,\"model\":\"a\"}",
                 AIGW_BODY_DUPLICATE, 30);
    assert_fault("{\"stream_options\":null,\"stream_options\":{},"
                 "\"model\":\"a\"}", AIGW_BODY_DUPLICATE, 40);
    assert_fault("{\"stream_options\":{\"include_usage\":true,"
                 "\"include_usage\":false},\"model\":\"a\"}",
                 AIGW_BODY_DUPLICATE, 56);
    assert_fault("{\"model\":\"a\",\"x\":1,\"x\":2}", AIGW_BODY_OK, 0);
}

static void a_model_is_a_string_of_1_to_256_bytes(void **state)
{
    char text[700];
    aigw_reqbody_t rb;
    int n;

    (void)state;
    assert_fault("{}", AIGW_BODY_NO_MODEL, 2);
    assert_fault("{\"Model\":\"m\",\"model \":\"m\"}", AIGW_BODY_NO_MODEL,
                 26);
    assert_fault("{\"model\":\"\"}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":null}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":7}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":[\"m\"]}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":{\"model\":\"m\"}}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":\"a\\n\"}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":\"a\\u0000\"}", AIGW_BODY_BAD_MODEL, 9);
    assert_fault("{\"model\":\"a\\u007f\"}", AIGW_BODY_BAD_MODEL, 9);
    for (n = 254; n <= 258; ++n) {
        snprintf(text, sizeof(text), "{\"model\":\"%0*d\"}", n, 0);
        assert_int_equal(scan(text, &rb), n <= 256 ? AIGW_BODY_OK
                                                   : AIGW_BODY_BAD_MODEL);
        if (n <= 256) {
            assert_int_equal(strlen(rb.model), n);
            assert_int_equal(rb.model_len, n + 2);
        }
        snprintf(text, sizeof(text), "{\"model\":\"\\u0030%0*d\"}", n - 1, 0);
        assert_int_equal(scan(text, &rb), n <= 256 ? AIGW_BODY_OK
                                                   : AIGW_BODY_BAD_MODEL);
    }
}

static void stream_and_its_options_have_their_types(void **state)
{
    static const char *const values[] = {"1", "\"true\"", "[]", "{}", "0",
                                         "\"\""};
    static const char *const not_objects[] = {"1", "\"\"", "[]", "true",
                                              "false"};
    char text[200];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        snprintf(text, sizeof(text), "{\"stream\":%s,\"model\":\"m\"}",
                 values[i]);
        assert_fault(text, AIGW_BODY_BAD_STREAM, 10);
        snprintf(text, sizeof(text),
                 "{\"stream_options\":{\"include_usage\":%s},"
                 "\"model\":\"m\"}", values[i]);
        assert_fault(text, AIGW_BODY_BAD_OPTIONS, 35);
    }
    for (i = 0; i < sizeof(not_objects) / sizeof(not_objects[0]); ++i) {
        snprintf(text, sizeof(text),
                 "{\"stream_options\":%s,\"model\":\"m\"}", not_objects[i]);
        assert_fault(text, AIGW_BODY_BAD_OPTIONS, 18);
    }
}

static void nesting_over_64_is_refused_as_such(void **state)
{
    char text[400];
    aigw_reqbody_t rb;
    int depth;

    (void)state;
    for (depth = 60; depth <= 70; ++depth) {
        int n = snprintf(text, sizeof(text), "{\"model\":\"m\",\"x\":");
        int i;

        for (i = 1; i < depth; ++i) {
            text[n++] = '[';
        }
        for (i = 1; i < depth; ++i) {
            text[n++] = ']';
        }
        text[n++] = '}';
        assert_int_equal(scan_n(text, (size_t)n, &rb),
                         depth <= 64 ? AIGW_BODY_OK : AIGW_BODY_TOO_DEEP);
    }
}

static void a_stream_is_made_to_tell_its_usage(void **state)
{
    (void)state;
    assert_splice("{\"model\":\"m\",\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"include_usage\":true},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice(" { \"model\":\"m\",\"stream\":true}", 1, NULL,
                  " {\"stream_options\":{\"include_usage\":true}, "
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":{},\"model\":\"m\",\"stream\":true}",
                  1, NULL,
                  "{\"stream_options\":{\"include_usage\":true},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":{ \n},\"model\":\"m\","
                  "\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"include_usage\":true \n},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":{ \"x\":1},\"model\":\"m\","
                  "\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"include_usage\":true, \"x\":1},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":null,\"model\":\"m\","
                  "\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"include_usage\":true},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":{\"x\":{},\"include_usage\":false},"
                  "\"model\":\"m\",\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"x\":{},\"include_usage\":true},"
                  "\"model\":\"m\",\"stream\":true}");
    assert_splice("{\"stream_options\":{\"include_usage\" : null },"
                  "\"model\":\"m\",\"stream\":true}", 1, NULL,
                  "{\"stream_options\":{\"include_usage\" : true },"
                  "\"model\":\"m\",\"stream\":true}");
}

static void a_body_that_needs_nothing_goes_as_it_is(void **state)
{
    static const char *const same[] = {
        "{\"model\":\"m\"}",
        "{\"model\":\"m\",\"stream\":false}",
        "{\"model\":\"m\",\"stream\":null,\"stream_options\":null}",
        ("{\"model\":\"m\",\"stream\":true,"
         "\"stream_options\":{\"include_usage\":true}}"),
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(same) / sizeof(same[0]); ++i) {
        assert_splice(same[i], 1, NULL, same[i]);
        assert_splice(same[i], 0, NULL, same[i]);
    }
    assert_splice("{\"model\":\"m\",\"stream\":true}", 0, NULL,
                  "{\"model\":\"m\",\"stream\":true}");
}

static void a_model_is_renamed_in_its_place(void **state)
{
    (void)state;
    assert_splice("{\"a\":1,\"model\" : \"x\\u0079\" ,\"b\":2}", 0,
                  "\"other\"",
                  "{\"a\":1,\"model\" : \"other\" ,\"b\":2}");
    assert_splice("{\"stream\":true,\"model\":\"x\"}", 1, "\"longer name\"",
                  "{\"stream_options\":{\"include_usage\":true},"
                  "\"stream\":true,\"model\":\"longer name\"}");
    assert_splice("{\"model\":\"x\",\"stream\":true,\"stream_options\":{}}",
                  1, "\"y\"",
                  "{\"model\":\"y\",\"stream\":true,"
                  "\"stream_options\":{\"include_usage\":true}}");
    assert_splice("{\"stream_options\":{},\"stream\":true,\"model\":\"x\"}",
                  1, "\"y\"",
                  "{\"stream_options\":{\"include_usage\":true},"
                  "\"stream\":true,\"model\":\"y\"}");
}

static void every_beginning_of_a_body_is_refused(void **state)
{
    static const char text[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9 \\\"x\\\"\"}"
        "],\"model\":\"m\",\"n\":-1.5e+3,\"stream\":true,"
        "\"stream_options\":{\"include_usage\":null}}";
    aigw_reqbody_t rb;
    size_t n;

    (void)state;
    for (n = 0; n < sizeof(text) - 1; ++n) {
        assert_int_equal(scan_n(text, n, &rb), AIGW_BODY_NOT_JSON);
        assert_int_equal(rb.fault_at, n);
    }
    assert_int_equal(scan_n(text, n, &rb), AIGW_BODY_OK);
}

static void what_stands_behind_megabytes_is_found(void **state)
{
    enum { SIZE = 8 * 1024 * 1024 };
    char *text = malloc(SIZE);
    size_t n = 0;
    aigw_reqbody_t rb;

    (void)state;
    n += (size_t)snprintf(text, SIZE, "{\"messages\":[");
    while (n < SIZE - 4096) {
        n += (size_t)snprintf(text + n, SIZE - n,
                              "{\"role\":\"user\",\"content\":\"%01000d\\n"
                              "\\\"stream\\\":true\"},", 5);
    }
    n += (size_t)snprintf(text + n, SIZE - n,
                          "{}],\"stream\":true,\"model\":\"last\"}");
    assert_int_equal(aigw_reqbody_scan(text, n, &rb), AIGW_BODY_OK);
    assert_string_equal(rb.model, "last");
    assert_int_equal(rb.stream, 1);
    assert_int_equal(rb.model_at, n - 7);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_and_stream_are_found_at_depth_one_only),
        cmocka_unit_test(places_point_at_the_values),
        cmocka_unit_test(a_body_that_is_not_one_json_object_is_refused),
        cmocka_unit_test(a_key_of_ours_that_comes_twice_is_refused),
        cmocka_unit_test(a_model_is_a_string_of_1_to_256_bytes),
        cmocka_unit_test(stream_and_its_options_have_their_types),
        cmocka_unit_test(nesting_over_64_is_refused_as_such),
        cmocka_unit_test(a_stream_is_made_to_tell_its_usage),
        cmocka_unit_test(a_body_that_needs_nothing_goes_as_it_is),
        cmocka_unit_test(a_model_is_renamed_in_its_place),
        cmocka_unit_test(every_beginning_of_a_body_is_refused),
        cmocka_unit_test(what_stands_behind_megabytes_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
