/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms: which are taken, part by part, and which are refused because readers
 * may take them differently.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "multipart.h"

#define TYPE "multipart/form-data; boundary=XyZ"
#define MODEL "Content-Disposition: form-data; name=\"model\"\r\n"
#define FORM(head, value) "--XyZ\r\n" head "\r\n" value "\r\n--XyZ--\r\n"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The parts as "name=value;..." and how it ended; the body is an exact copy,
 * so that a sanitizer sees a read behind it. */
static aigw_rc_t parts_of(const char *type, const char *body, size_t n,
                          char *out, size_t size)
{
    char *copy = malloc(n ? n : 1);
    aigw_multipart_part_t part;
    aigw_multipart_t mp;
    size_t w = 0;
    aigw_rc_t rc;

    memcpy(copy, body, n);
    out[0] = '\0';
    rc = aigw_multipart_start(&mp, type, copy, n);
    while (rc == AIGW_OK
           && (rc = aigw_multipart_next(&mp, &part)) == AIGW_OK) {
        w += (size_t)snprintf(out + w, size - w, "%.*s%s%.*s;",
                              (int)part.name.n, part.name.p,
                              part.file ? "@" : "=", (int)part.value.n,
                              part.value.p);
        assert_true(w < size);
    }
    free(copy);
    return rc;
}

static aigw_rc_t parts_of_text(const char *body, char *out, size_t size)
{
    return parts_of(TYPE, body, strlen(body), out, size);
}

static void parts_are_slices_of_the_body(void **state)
{
    static const char body[] =
        "--XyZ\r\n" MODEL "\r\nwh-1\r\n"
        "--XyZ\r\ncontent-disposition:form-data; NAME=file; "
        "filename=\"a;b.wav\"\r\nContent-Type: audio/wav\r\n"
        "Content-Transfer-Encoding: binary\r\nX-Y: z\r\n\r\n"
        "\r\n--Xy\r\n-XyZ--\r\n\r\n"
        "--XyZ\r\nContent-Disposition: form-data; name=\"a[]\"\r\n\r\n\r\n"
        "--XyZ--\r\n";
    char out[200];

    (void)state;
    assert_int_equal(parts_of_text(body, out, sizeof(out)), AIGW_DONE);
    assert_string_equal(out, "model=wh-1;file@\r\n--Xy\r\n-XyZ--\r\n;a[]=;");
}

static void a_form_may_be_empty_and_lack_its_last_crlf(void **state)
{
    char out[200];

    (void)state;
    assert_int_equal(parts_of_text("--XyZ--", out, sizeof(out)), AIGW_DONE);
    assert_int_equal(parts_of_text("--XyZ--\r\n", out, sizeof(out)),
                     AIGW_DONE);
    assert_string_equal(out, "");
}

static void bytes_of_any_value_are_data(void **state)
{
    char body[600], out[600], *value;
    int i, n;

    (void)state;
    n = snprintf(body, sizeof(body), "--XyZ\r\n" MODEL "\r\n");
    value = body + n;
    for (i = 0; i < 256; ++i) {
        value[i] = (char)(255 - i);
    }
    memcpy(value + 256, "\r\n--XyZ--", 9);
    assert_int_equal(parts_of(TYPE, body, (size_t)n + 256 + 9, out,
                              sizeof(out)),
                     AIGW_DONE);
}

static void the_boundary_is_found_in_the_type(void **state)
{
    static const char *const good[] = {
        "multipart/form-data; boundary=XyZ",
        "Multipart/Form-Data;boundary=\"XyZ\"",
        "multipart/form-data ; charset=utf-8;  BOUNDARY=XyZ ",
    };
    static const char *const bad[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"XyZ",
        "multipart/form-data; boundary=XyZ; boundary=XyZ",
        "multipart/form-data; boundary=XyZ; boundary=Abc",
        "multipart/form-data; boundary=\"Xy Z\"",
        "multipart/form-data; boundary=\"Xy\\Z\"",
        "multipart/form-data; boundary",
        "multipart/form-data; =XyZ",
        "multipart/form-data, boundary=XyZ",
        "multipart/form-data; boundary=XyZ trailing",
        "multipart/form-datax; boundary=XyZ",
        "multipart/mixed; boundary=XyZ",
        "application/json",
        "",
    };
    char out[10], type[200];
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(good); ++i) {
        assert_true(aigw_multipart_is(good[i]));
        assert_int_equal(parts_of(good[i], "--XyZ--", 7, out, sizeof(out)),
                         AIGW_DONE);
    }
    for (i = 0; i < COUNT(bad); ++i) {
        assert_int_equal(parts_of(bad[i], "--XyZ--", 7, out, sizeof(out)),
                         AIGW_MALFORMED);
    }
    snprintf(type, sizeof(type), "multipart/form-data; boundary=%071d", 0);
    assert_int_equal(parts_of(type, type, 0, out, sizeof(out)),
                     AIGW_MALFORMED);
    assert_false(aigw_multipart_is(NULL));
    assert_false(aigw_multipart_is("application/json"));
    assert_false(aigw_multipart_is("multipart/form-datax"));
}

static void what_readers_may_take_differently_is_malformed(void **state)
{
    static const char *const bodies[] = {
        /* around the parts */
        "",
        "-",
        "--XyZ",
        "--XyZ-",
        "--XyZ\r",
        "--XyZ\r\n",
        "\r\n" FORM(MODEL, "m"),
        "preamble\r\n" FORM(MODEL, "m"),
        FORM(MODEL, "m") "epilogue",
        FORM(MODEL, "m") "\r\n",
        FORM(MODEL, "m") FORM(MODEL, "n"),
        "--XyZ--\r",
        "--XyZ \r\n" MODEL "\r\nm\r\n--XyZ--",
        "--XyZ\n" MODEL "\r\nm\r\n--XyZ--",
        "--XyZ\r\n" MODEL "\r\nm\n--XyZ--\r\n",
        "--XyZ\r\n" MODEL "\r\nm\r\n--XyZ",
        "--XyZ\r\n" MODEL "\r\nm\r\n--XyZ-\r\n",
        "--XyZ\r\n" MODEL "\r\n--XyZ--",
        "--XyZ\r\n" MODEL "\r\n--XyZ\r\n" MODEL "\r\nm\r\n--XyZ--",
        "--XyZ\r\n" MODEL "\r\nm\r\n--XyZmore\r\n" MODEL "\r\nm\r\n--XyZ--",
        "--XyZ\r\n" MODEL "\r\nm\r\n--XyZ \r\n" MODEL "\r\nm\r\n--XyZ--",
        /* heads */
        FORM("", "m"),
        FORM("Content-Type: text/plain\r\n", "m"),
        FORM(MODEL MODEL, "m"),
        FORM("Content-Disposition: form-data\r\n", "m"),
        FORM("Content-Disposition: form-data;\r\n", "m"),
        FORM("Content-Disposition: attachment; name=\"model\"\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\"model\"; "
             "name=\"other\"\r\n",
             "m"),
        FORM("Content-Disposition: form-data; name=model; more=1\r\n", "m"),
        FORM("Content-Disposition: form-data; name*=utf-8''model\r\n", "m"),
        FORM("Content-Disposition: form-data; name*0=mod; name*1=el\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\"mod\\el\"\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\"mod%65l\"\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\"model\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\r\n", "m"),
        FORM("Content-Disposition: form-data name=\"model\"\r\n", "m"),
        FORM("Content-Disposition: form-data;\r\n name=\"model\"\r\n", "m"),
        FORM("Content-Disposition : form-data; name=\"model\"\r\n", "m"),
        FORM("Content-Disposition: form-data; name=\"a\"; "
             "filename=\"x\\\"; name=\"model\"\r\n",
             "m"),
        FORM("Content-Disposition: form-data; name=\"mo\x01"
             "del\"\r\n",
             "m"),
        FORM(MODEL "no colon\r\n", "m"),
        FORM(MODEL ": no name\r\n", "m"),
        FORM("--XyZed: a\r\n" MODEL, "m"),
        FORM(MODEL "X: a\rb\r\n", "m"),
        FORM(MODEL "X: a\nb\r\n", "m"),
        FORM(MODEL "Content-Type: multipart/mixed; boundary=a\r\n", "m"),
        FORM(MODEL "Content-Transfer-Encoding: base64\r\n", "bQ=="),
        "--XyZ\r\n" MODEL,
        "--XyZ\r\n" MODEL "\r",
        "--XyZ\r\n" MODEL "\r\n",
    };
    char out[100];
    size_t i;

    (void)state;
    for (i = 0; i < COUNT(bodies); ++i) {
        if (parts_of_text(bodies[i], out, sizeof(out)) != AIGW_MALFORMED) {
            fail_msg("taken: %s", bodies[i]);
        }
    }
}

static void a_nul_in_a_head_is_malformed(void **state)
{
    static const char body[] = FORM("X: a\0b\r\n" MODEL, "m");
    char out[100];

    (void)state;
    assert_int_equal(parts_of(TYPE, body, sizeof(body) - 1, out, sizeof(out)),
                     AIGW_MALFORMED);
}

static void every_beginning_of_a_form_is_malformed(void **state)
{
    static const char body[] = FORM(MODEL, "m");
    char out[100];
    size_t n;

    (void)state;
    for (n = 0; n < sizeof(body) - 3; ++n) {
        assert_int_equal(parts_of(TYPE, body, n, out, sizeof(out)),
                         AIGW_MALFORMED);
    }
    assert_int_equal(parts_of(TYPE, body, n, out, sizeof(out)), AIGW_DONE);
}

static void heads_and_their_number_are_bounded(void **state)
{
    static const char part[] = "--XyZ\r\n" MODEL "\r\nm\r\n";
    size_t size = 300 * sizeof(part) + AIGW_MULTIPART_HEAD;
    char *body = malloc(size), *out = malloc(size);
    size_t n = 0;
    int i;

    (void)state;
    for (i = 0; i < AIGW_MULTIPART_PARTS; ++i) {
        memcpy(body + n, part, sizeof(part) - 1);
        n += sizeof(part) - 1;
    }
    memcpy(body + n, "--XyZ--", 7);
    assert_int_equal(parts_of(TYPE, body, n + 7, out, size), AIGW_DONE);
    memcpy(body + n, part, sizeof(part) - 1);
    assert_int_equal(parts_of(TYPE, body, n + sizeof(part), out, size),
                     AIGW_TOO_BIG);

    n = (size_t)snprintf(body, size, "--XyZ\r\nX: ");
    memset(body + n, 'x', AIGW_MULTIPART_HEAD);
    assert_int_equal(parts_of(TYPE, body, n + AIGW_MULTIPART_HEAD, out, size),
                     AIGW_TOO_BIG);
    free(body);
    free(out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_slices_of_the_body),
        cmocka_unit_test(a_form_may_be_empty_and_lack_its_last_crlf),
        cmocka_unit_test(bytes_of_any_value_are_data),
        cmocka_unit_test(the_boundary_is_found_in_the_type),
        cmocka_unit_test(what_readers_may_take_differently_is_malformed),
        cmocka_unit_test(a_nul_in_a_head_is_malformed),
        cmocka_unit_test(every_beginning_of_a_form_is_malformed),
        cmocka_unit_test(heads_and_their_number_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
