/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers as they come from the wire: what is taken, what is refused, and
 * that the end of a body is found to the byte, however the bytes are cut.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "http1.h"
#include "pieces.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* A head that comes byte by byte; then the same in one piece. */
static aigw_rc_t parse_n(const char *text, size_t n, aigw_http1_head_t *head)
{
    aigw_http1_head_t slow;
    aigw_rc_t rc, slow_rc = AIGW_AGAIN;
    apr_size_t scanned = 0;
    char *copy = malloc(n);
    size_t i;

    memcpy(copy, text, n);
    for (i = 1; i <= n && slow_rc == AIGW_AGAIN; ++i) {
        slow_rc = aigw_http1_head(copy, i, &scanned, &slow);
    }
    free(copy);
    scanned = 0;
    rc = aigw_http1_head(text, n, &scanned, head);
    assert_int_equal(rc, slow_rc);
    if (rc == AIGW_OK) {
        assert_int_equal(i - 1, head->size);
        assert_int_equal(slow.size, head->size);
        assert_int_equal(slow.n_fields, head->n_fields);
        assert_int_equal(slow.frame, head->frame);
    }
    return rc;
}

static aigw_rc_t parse(const char *text, aigw_http1_head_t *head)
{
    return parse_n(text, strlen(text), head);
}

static void assert_field(const aigw_http1_head_t *head, const char *name,
                         const char *want)
{
    aigw_slice_t v = aigw_http1_field(head, name);

    assert_non_null(v.p);
    assert_int_equal(v.n, strlen(want));
    assert_memory_equal(v.p, want, v.n);
}

static void a_head_is_taken_apart(void **state)
{
    static const char text[] = "HTTP/1.1 200 All is well\r\n"
                               "Content-Type: text/event-stream\r\n"
                               "X-Empty:\r\n"
                               "x-spaces: \t a b \t \r\n"
                               "!#$%&'*+-.^_`|~09aZ: tchars\r\n"
                               "X-Empty: second\r\n"
                               "X-High: \xe4\xff\r\n"
                               "\r\nbody";
    aigw_http1_head_t head;

    (void)state;
    assert_int_equal(parse(text, &head), AIGW_OK);
    assert_int_equal(head.status, 200);
    assert_int_equal(head.minor, 1);
    assert_int_equal(head.frame, AIGW_FRAME_CLOSE);
    assert_int_equal(head.size, sizeof(text) - 1 - 4);
    assert_int_equal(head.n_fields, 6);
    assert_field(&head, "content-TYPE", "text/event-stream");
    assert_field(&head, "x-empty", "");
    assert_field(&head, "X-Spaces", "a b");
    assert_field(&head, "!#$%&'*+-.^_`|~09aZ", "tchars");
    assert_field(&head, "X-High", "\xe4\xff");
    assert_null(aigw_http1_field(&head, "x-emptyx").p);
    assert_null(aigw_http1_field(&head, "").p);
}

static void a_status_is_three_digits_with_or_without_a_phrase(void **state)
{
    static const struct {
        const char *line;
        int status; /* 0: malformed */
    } rows[] = {
        {"HTTP/1.1 200 OK", 200},     {"HTTP/1.1 200 ", 200},
        {"HTTP/1.1 200", 200},        {"HTTP/1.1 529 Overloaded", 529},
        {"HTTP/1.1 520 ", 520},       {"HTTP/1.0 404 Not Found", 404},
        {"HTTP/1.9 299 x", 299},      {"HTTP/1.1 100 Continue", 100},
        {"HTTP/1.1 599 \xe4\xf6", 599}, {"HTTP/1.1 099 x", 0},
        {"HTTP/1.1 600 x", 0},        {"HTTP/1.1 20 OK", 0},
        {"HTTP/1.1 2000 OK", 0},      {"HTTP/1.1 200OK", 0},
        {"HTTP/1.1  200 OK", 0},      {"HTTP/1.1\t200 OK", 0},
        {"HTTP/2 200 OK", 0},         {"HTTP/2.0 200 OK", 0},
        {"HTTP/1.10 200 OK", 0},      {"HTTP/1. 200 OK", 0},
        {"http/1.1 200 OK", 0},       {" HTTP/1.1 200 OK", 0},
        {"HTTP/1.1 2x0 OK", 0},       {"HTTP/1.1 -20 OK", 0},
        {"HTTP/1.1 ", 0},             {"", 0},
        {"ICY 200 OK", 0},            {"<html>", 0},
        {"HTTP/1.1 200 a\rb", 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        aigw_http1_head_t head;
        char text[200];
        aigw_rc_t rc;

        snprintf(text, sizeof(text), "%s\r\nA: b\r\n\r\n", rows[i].line);
        rc = parse(text, &head);
        if (rows[i].status == 0) {
            if (rc != AIGW_MALFORMED) {
                fail_msg("taken: %s", rows[i].line);
            }
        }
        else if (rc != AIGW_OK || head.status != rows[i].status) {
            fail_msg("not taken: %s", rows[i].line);
        }
    }
}

static void fields_that_two_readers_could_read_differently_are_refused(
    void **state)
{
    static const char *const bad[] = {
        "A : b",          "A b: c",     ": b",          " A: b",
        "A: b\r\n folded", "A: b\r\n\tfolded", "A",     "A\r\nB: c",
        "A: b\rc",        "A: b\r\r\nB: c", "A\xe4: b", "A\x7f: b",
        "A(b): c",        "A,b: c",     "A\t: b",       "\r: b",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity",
        "Transfer-Encoding:", "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked;x=1", "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \013chunked",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 4", "Content-Length: 3,", "Content-Length: ,3",
        "Content-Length: -1", "Content-Length: +1", "Content-Length: 0x1",
        "Content-Length: 1 2", "Content-Length: ", "Content-Length: 1.0",
        "Content-Length: 9223372036854775808",
        "Content-Length: 99999999999999999999999",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        aigw_http1_head_t head;
        char text[300];

        snprintf(text, sizeof(text), OK "%s\r\n\r\n", bad[i]);
        if (parse(text, &head) != AIGW_MALFORMED) {
            fail_msg("taken: %s", bad[i]);
        }
    }
    {
        static const char nul[] = OK "A: b\0c\r\n\r\n";
        static const char name[] = OK "A\0: b\r\n\r\n";
        aigw_http1_head_t head;

        assert_int_equal(parse_n(nul, sizeof(nul) - 1, &head),
                         AIGW_MALFORMED);
        assert_int_equal(parse_n(name, sizeof(name) - 1, &head),
                         AIGW_MALFORMED);
    }
}

static void chunked_is_for_http_1_1(void **state)
{
    aigw_http1_head_t head;

    (void)state;
    assert_int_equal(parse("HTTP/1.0 200 OK\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n", &head),
                     AIGW_MALFORMED);
    assert_int_equal(parse(OK "transfer-encoding: ChUnKeD\r\n\r\n", &head),
                     AIGW_OK);
    assert_int_equal(head.frame, AIGW_FRAME_CHUNKED);
    assert_true(head.keep_alive);
}

static void a_lone_lf_ends_a_line_of_the_head(void **state)
{
    aigw_http1_head_t head;

    (void)state;
    assert_int_equal(parse("HTTP/1.1 200 OK\nA: b\nC: d\n\nrest", &head),
                     AIGW_OK);
    assert_field(&head, "A", "b");
    assert_field(&head, "C", "d");
    assert_int_equal(head.size, 27);
    assert_int_equal(parse(OK "A: b\n\r\nrest", &head), AIGW_OK);
    assert_int_equal(parse(OK "A: b\r\n\nrest", &head), AIGW_OK);
    assert_int_equal(parse(OK "A: b\r\n\r\r\n\r\n", &head), AIGW_MALFORMED);
    assert_int_equal(parse("\r\n" OK "\r\n", &head), AIGW_MALFORMED);
    assert_int_equal(parse("\n\n", &head), AIGW_MALFORMED);
}

static void a_head_without_its_blank_line_waits(void **state)
{
    static const char text[] = OK "A: b\r\nC: d\r\n\r\n";
    size_t n;

    (void)state;
    for (n = 0; n < sizeof(text) - 1; ++n) {
        aigw_http1_head_t head;
        apr_size_t scanned = 0;

        assert_int_equal(aigw_http1_head(text, n, &scanned, &head),
                         AIGW_AGAIN);
        assert_int_equal(scanned, n);
    }
}

static void more_fields_than_there_is_room_for_are_told(void **state)
{
    aigw_http1_head_t head;
    char text[4096];
    int fields;

    (void)state;
    for (fields = 126; fields <= 130; ++fields) {
        size_t n = (size_t)snprintf(text, sizeof(text), OK);
        int i;

        for (i = 0; i < fields; ++i) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "F%d: %d\r\n",
                                  i, i);
        }
        snprintf(text + n, sizeof(text) - n, "\r\n");
        assert_int_equal(parse(text, &head), fields <= AIGW_HTTP1_FIELDS
                                                 ? AIGW_OK
                                                 : AIGW_TOO_BIG);
    }
}

static void a_connection_is_kept_by_version_and_word(void **state)
{
    static const struct {
        const char *head;
        int keep;
        aigw_frame_t frame;
    } rows[] = {
        {"1 200 OK\r\nContent-Length: 3", 1, AIGW_FRAME_LENGTH},
        {"1 200 OK\r\nContent-Length: 3, 3", 1, AIGW_FRAME_LENGTH},
        {"1 200 OK\r\nContent-Length: 0", 1, AIGW_FRAME_NONE},
        {"1 200 OK\r\nContent-Length: 3\r\nConnection: close", 0,
         AIGW_FRAME_LENGTH},
        {"1 200 OK\r\nContent-Length: 3\r\nConnection: x, CLOSE ,y", 0,
         AIGW_FRAME_LENGTH},
        {"1 200 OK\r\nContent-Length: 3\r\nConnection: closed", 1,
         AIGW_FRAME_LENGTH},
        {"1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n"
         "Connection: close", 0, AIGW_FRAME_LENGTH},
        {"0 200 OK\r\nContent-Length: 3", 0, AIGW_FRAME_LENGTH},
        {"0 200 OK\r\nContent-Length: 3\r\nConnection: Keep-Alive", 1,
         AIGW_FRAME_LENGTH},
        {"1 200 OK", 0, AIGW_FRAME_CLOSE},
        {"1 200 OK\r\nConnection: keep-alive", 0, AIGW_FRAME_CLOSE},
        {"1 204 No Content", 1, AIGW_FRAME_NONE},
        {"1 304 Not Modified\r\nContent-Length: 9", 1, AIGW_FRAME_NONE},
        {"1 100 Continue", 1, AIGW_FRAME_NONE},
        {"1 103 Early Hints\r\nLink: x", 1, AIGW_FRAME_NONE},
        {"1 101 Switching Protocols", 0, AIGW_FRAME_NONE},
        {"1 204 No Content\r\nTransfer-Encoding: chunked", 0,
         AIGW_FRAME_NONE},
        {"1 204 No Content\r\nContent-Length: 5", 0, AIGW_FRAME_NONE},
        {"1 500 Oops\r\nTransfer-Encoding: chunked", 1, AIGW_FRAME_CHUNKED},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        aigw_http1_head_t head;
        char text[300];

        snprintf(text, sizeof(text), "HTTP/1.%s\r\n\r\n", rows[i].head);
        assert_int_equal(parse(text, &head), AIGW_OK);
        if (head.keep_alive != rows[i].keep || head.frame != rows[i].frame) {
            fail_msg("%s: keep %d, frame %d", rows[i].head, head.keep_alive,
                     (int)head.frame);
        }
    }
}

/* ---- bodies ------------------------------------------------------------- */

typedef struct {
    aigw_http1_body_t b;
    aigw_rc_t rc;
    char out[8192];
    size_t n;
    size_t used;    /* bytes up to the end or the fault */
} decoder_t;

static void decode(void *ctx, const char *p, size_t n)
{
    decoder_t *d = ctx;
    const char *at = p;
    aigw_slice_t run;

    if (d->rc != AIGW_AGAIN) {
        return;
    }
    while ((d->rc = aigw_http1_body_next(&d->b, &at, p + n, &run))
           == AIGW_OK) {
        assert_true(run.n > 0 && d->n + run.n <= sizeof(d->out));
        assert_ptr_equal(run.p + run.n, at);
        memcpy(d->out + d->n, run.p, run.n);
        d->n += run.n;
    }
    d->used += (size_t)(at - p);
    if (d->rc == AIGW_AGAIN) {
        assert_ptr_equal(at, p + n);
    }
    else {
        const char *again = at;

        assert_int_equal(aigw_http1_body_next(&d->b, &again, p + n, &run),
                         d->rc);
        assert_ptr_equal(again, at);
    }
}

static void assert_body_n(aigw_frame_t frame, apr_uint64_t length,
                          const char *wire, size_t n, const char *want,
                          aigw_rc_t rc, size_t used)
{
    pieces_t way = {0, 0, 0};
    aigw_http1_head_t head;

    memset(&head, 0, sizeof(head));
    head.frame = frame;
    head.length = length;
    do {
        decoder_t d;

        memset(&d, 0, sizeof(d));
        d.rc = AIGW_AGAIN;
        aigw_http1_body_init(&d.b, &head);
        pieces_feed(&way, wire, n, decode, &d);
        if (d.rc == AIGW_AGAIN) {
            /* the end may have come with the last byte of a run */
            decode(&d, wire + n, 0);
        }
        if (d.rc != rc || d.used != used || d.n != strlen(want)
            || memcmp(d.out, want, d.n) != 0) {
            fail_msg("%s: rc %d (wanted %d), used %d (wanted %d), \"%.*s\"",
                     wire, (int)d.rc, (int)rc, (int)d.used, (int)used,
                     (int)d.n, d.out);
        }
        assert_int_equal(aigw_http1_body_eof(&d.b),
                         rc == AIGW_DONE || frame == AIGW_FRAME_CLOSE
                             ? AIGW_DONE
                             : AIGW_TRUNCATED);
    } while (pieces_next(&way, n));
}

static void assert_chunks(const char *wire, const char *want, aigw_rc_t rc,
                          size_t used)
{
    assert_body_n(AIGW_FRAME_CHUNKED, 0, wire, strlen(wire), want, rc, used);
}

static void chunks_are_put_together(void **state)
{
    (void)state;
    assert_chunks("0\r\n\r\n", "", AIGW_DONE, 5);
    assert_chunks("3\r\nabc\r\n0\r\n\r\nHTTP", "abc", AIGW_DONE, 13);
    assert_chunks("3\r\nabc\r\n00A\r\n0123456789\r\n000\r\n\r\n",
                  "abc0123456789", AIGW_DONE, 32);
    assert_chunks("b\r\nhello\r\n0\r\n\r\n0\r\n\r\n", "hello\r\n0\r\n\r",
                  AIGW_MALFORMED, 14);
    assert_chunks("0000000000000001\r\na\r\n0\r\n\r\n", "a", AIGW_DONE, 26);
}

static void extensions_and_trailers_are_read_over(void **state)
{
    (void)state;
    assert_chunks("3;a=b;c=\"d\"\r\nabc\r\n0;x\r\n\r\n", "abc", AIGW_DONE, 25);
    assert_chunks("3 \r\nabc\r\n0\t;x\r\n\r\n", "abc", AIGW_DONE, 17);
    assert_chunks("1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\nX", "a", AIGW_DONE, 23);
}

static void a_broken_chunk_is_malformed_where_it_breaks(void **state)
{
    (void)state;
    assert_chunks("x\r\n", "", AIGW_MALFORMED, 0);
    assert_chunks("\r\n", "", AIGW_MALFORMED, 0);
    assert_chunks(";x\r\n", "", AIGW_MALFORMED, 0);
    assert_chunks(" 3\r\nabc", "", AIGW_MALFORMED, 0);
    assert_chunks("-3\r\nabc", "", AIGW_MALFORMED, 0);
    assert_chunks("+3\r\nabc", "", AIGW_MALFORMED, 0);
    assert_chunks("0x3\r\nabc", "", AIGW_MALFORMED, 1);
    assert_chunks("3g\r\nabc", "", AIGW_MALFORMED, 1);
    assert_chunks("3\nabc", "", AIGW_MALFORMED, 1);
    assert_chunks("3\r\rabc", "", AIGW_MALFORMED, 2);
    assert_chunks("3\r\nabcd\r\n", "abc", AIGW_MALFORMED, 6);
    assert_chunks("3\r\nabc\n0\r\n", "abc", AIGW_MALFORMED, 6);
    assert_chunks("3\r\nabc\r0\r\n", "abc", AIGW_MALFORMED, 7);
    assert_chunks("3\r\nabc\r\n\r\n", "abc", AIGW_MALFORMED, 8);
    assert_chunks("3;a\nb\r\nabc", "", AIGW_MALFORMED, 3);
    assert_chunks("3;a\rb\r\nabc", "", AIGW_MALFORMED, 4);
    assert_chunks("0\r\n\rx", "", AIGW_MALFORMED, 4);
    assert_chunks("0\r\nA: b\n\r\n", "", AIGW_MALFORMED, 7);
    assert_chunks("0\r\nA: b\rx\r\n", "", AIGW_MALFORMED, 8);
    assert_chunks("00000000000000001\r\na", "", AIGW_MALFORMED, 16);
    assert_chunks("10000000000000000\r\na", "", AIGW_MALFORMED, 16);
}

static void a_cut_chunk_is_no_end(void **state)
{
    static const char wire[] = "3;x\r\nabc\r\n0\r\nA: b\r\n\r\n";
    size_t n;

    (void)state;
    for (n = 0; n < sizeof(wire) - 1; ++n) {
        char want[4] = "";

        if (n > 5) {
            memcpy(want, "abc", n - 5 < 3 ? n - 5 : 3);
        }
        assert_body_n(AIGW_FRAME_CHUNKED, 0, wire, n, want, AIGW_AGAIN, n);
    }
}

static void a_chunk_line_is_bounded(void **state)
{
    static const char *const before[] = {"3;", "0\r\nA: "};
    char wire[5000];
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        aigw_http1_body_t b = {AIGW_FRAME_CHUNKED, 0, 0, 0};
        size_t n = strlen(before[i]);
        const char *p = wire;
        aigw_slice_t run;

        memset(wire, 'x', sizeof(wire));
        memcpy(wire, before[i], n);
        assert_int_equal(
            aigw_http1_body_next(&b, &p, wire + sizeof(wire), &run),
            AIGW_MALFORMED);
        assert_in_range(p - wire, 4090, 4110);
    }
}

static void the_largest_chunk_is_counted_right(void **state)
{
    aigw_http1_body_t b = {AIGW_FRAME_CHUNKED, 0, 0, 0};
    static const char wire[] = "fFfFfFfFfFfFfFfF\r\nabc";
    const char *p = wire;
    aigw_slice_t run;

    (void)state;
    assert_int_equal(
        aigw_http1_body_next(&b, &p, wire + sizeof(wire) - 1, &run), AIGW_OK);
    assert_int_equal(run.n, 3);
    assert_true(b.left == APR_UINT64_MAX - 3);
}

static void a_counted_body_ends_at_its_last_byte(void **state)
{
    (void)state;
    assert_body_n(AIGW_FRAME_LENGTH, 3, "abcHTTP", 7, "abc", AIGW_DONE, 3);
    assert_body_n(AIGW_FRAME_LENGTH, 3, "abc", 3, "abc", AIGW_DONE, 3);
    assert_body_n(AIGW_FRAME_LENGTH, 4, "abc", 3, "abc", AIGW_AGAIN, 3);
    assert_body_n(AIGW_FRAME_NONE, 0, "HTTP", 4, "", AIGW_DONE, 0);
}

static void a_close_delimited_body_ends_with_the_connection(void **state)
{
    (void)state;
    assert_body_n(AIGW_FRAME_CLOSE, 0, "0\r\n\r\n", 5, "0\r\n\r\n",
                  AIGW_AGAIN, 5);
    assert_body_n(AIGW_FRAME_CLOSE, 0, "", 0, "", AIGW_AGAIN, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_taken_apart),
        cmocka_unit_test(a_status_is_three_digits_with_or_without_a_phrase),
        cmocka_unit_test(
            fields_that_two_readers_could_read_differently_are_refused),
        cmocka_unit_test(chunked_is_for_http_1_1),
        cmocka_unit_test(a_lone_lf_ends_a_line_of_the_head),
        cmocka_unit_test(a_head_without_its_blank_line_waits),
        cmocka_unit_test(more_fields_than_there_is_room_for_are_told),
        cmocka_unit_test(a_connection_is_kept_by_version_and_word),
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(extensions_and_trailers_are_read_over),
        cmocka_unit_test(a_broken_chunk_is_malformed_where_it_breaks),
        cmocka_unit_test(a_cut_chunk_is_no_end),
        cmocka_unit_test(a_chunk_line_is_bounded),
        cmocka_unit_test(the_largest_chunk_is_counted_right),
        cmocka_unit_test(a_counted_body_ends_at_its_last_byte),
        cmocka_unit_test(a_close_delimited_body_ends_with_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
