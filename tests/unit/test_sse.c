/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event-stream grammar: each stream is fed whole, cut at every place and
 * in steps, and the events must be those of the standard every time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "sse.h"
#include "pieces.h"

/* What was seen, as text: "[" at a start, data as it is, "]" at an end. */
typedef struct {
    aigw_sse_t sse;
    char seen[8192];
    size_t n;
    size_t fed;
    size_t start[64], end[64]; /* offsets of START and END */
    int starts, ends;
} reader_t;

static void add(reader_t *r, const char *p, size_t n)
{
    assert_true(r->n + n < sizeof(r->seen));
    memcpy(r->seen + r->n, p, n);
    r->n += n;
    r->seen[r->n] = '\0';
}

static void feed(void *ctx, const char *p, size_t n)
{
    reader_t *r = ctx;
    const char *start = p;
    const char *end = p + n;
    aigw_slice_t run;

    while (p < end) {
        switch (aigw_sse_next(&r->sse, &p, end, &run)) {
        case AIGW_SSE_START:
            r->start[r->starts++] = r->fed + (size_t)(p - start);
            add(r, "[", 1);
            break;
        case AIGW_SSE_DATA:
            assert_true(run.n > 0);
            add(r, run.p, run.n);
            break;
        case AIGW_SSE_END:
            r->end[r->ends++] = r->fed + (size_t)(p - start);
            add(r, "]", 1);
            break;
        case AIGW_SSE_MORE:
            assert_ptr_equal(p, end);
            break;
        }
    }
    r->fed += n;
}

static void finish(reader_t *r)
{
    if (aigw_sse_finish(&r->sse) == AIGW_SSE_END) {
        add(r, "]", 1);
    }
    assert_int_equal(aigw_sse_finish(&r->sse), AIGW_SSE_MORE);
}

static void assert_events_n(const char *stream, size_t n, const char *want)
{
    pieces_t way = {0, 0, 0};

    do {
        reader_t r;

        memset(&r, 0, sizeof(r));
        aigw_sse_init(&r.sse, 1);
        pieces_feed(&way, stream, n, feed, &r);
        finish(&r);
        assert_string_equal(r.seen, want);
    } while (pieces_next(&way, n));
}

static void assert_events(const char *stream, const char *want)
{
    assert_events_n(stream, strlen(stream), want);
}

static void a_line_ends_with_lf_crlf_or_cr(void **state)
{
    (void)state;
    assert_events("data: a\n\ndata: b\n\n", "[a][b]");
    assert_events("data: a\r\n\r\ndata: b\r\n\r\n", "[a][b]");
    assert_events("data: a\r\rdata: b\r\r", "[a][b]");
    assert_events("data: a\r\n\rdata: b\n\r\n", "[a][b]");
    assert_events("data: a\n\rdata: b\r\r\n", "[a][b]");
    assert_events("data: a\r\n\n\r\n\r\n\rdata: b\n\n", "[a][b]");
}

static void one_space_after_the_colon_is_no_data(void **state)
{
    (void)state;
    assert_events("data:a\n\n", "[a]");
    assert_events("data: a\n\n", "[a]");
    assert_events("data:  a\n\n", "[ a]");
    assert_events("data:\ta\n\n", "[\ta]");
    assert_events("data: a \n\n", "[a ]");
}

static void data_lines_of_an_event_are_joined_by_lf(void **state)
{
    (void)state;
    assert_events("data: a\ndata: b\n\n", "[a\nb]");
    assert_events("data: a\r\ndata:b\r\ndata:  c\r\n\r\n", "[a\nb\n c]");
    assert_events("data\ndata\n\n", "[\n]");
    assert_events("data: a\ndata\ndata:\ndata: b\n\n", "[a\n\n\nb]");
    assert_events("data: a\nid: 1\n: c\ndata: b\n\n", "[a\nb]");
}

static void comments_and_blank_lines_are_no_event(void **state)
{
    (void)state;
    assert_events(": hello\n\n:\n\n\n\ndata: a\n\n: bye\n\n", "[a]");
    assert_events(":data: x\ndata: a\n\n", "[a]");
    assert_events("", "");
    assert_events("\n\r\n\r", "");
}

static void other_fields_are_read_over(void **state)
{
    (void)state;
    assert_events("event: e\nid: 1\nretry: 5\ndata: a\n\n", "[a]");
    assert_events("datax: 1\ndat: 2\nDATA: 3\n data: 4\nd\n\n", "[]");
    assert_events("data : 1\ndata: 2\n\n", "[2]");
    assert_events("id\n\ndata\n\n", "[][]");
    assert_events("event: data: 1\n\n", "[]");
}

static void a_byte_order_mark_is_taken_at_the_start_only(void **state)
{
    (void)state;
    assert_events("\xef\xbb\xbf" "data: a\n\n", "[a]");
    assert_events("\xef\xbb\xbf\n\xef\xbb\xbf" "data: a\n\n", "[]");
    assert_events("\xef\xbb\xbf\xef\xbb\xbf" "data: a\n\n", "[]");
    assert_events("\xef\xbb" "data: a\ndata: b\n\n", "[b]");
    assert_events("\xef" "data: a\n\ndata: b\n\n", "[][b]");
    assert_events("\xef\n\n", "[]");
    assert_events("\xef\xbb\xbf", "");
}

static void what_the_end_cuts_off_is_an_event_too(void **state)
{
    (void)state;
    assert_events("data: a", "[a]");
    assert_events("data: a\n", "[a]");
    assert_events("data: a\r", "[a]");
    assert_events("data: a\n\ndata: b", "[a][b]");
    assert_events("data", "[]");
    assert_events("dat", "[]");
    assert_events(": comment", "");
}

static void a_nul_is_a_byte_like_others(void **state)
{
    static const char stream[] = "data: a\0b\n\nda\0ta: x\n\n";
    pieces_t way = {0, 0, 0};

    (void)state;
    do {
        reader_t r;

        memset(&r, 0, sizeof(r));
        aigw_sse_init(&r.sse, 1);
        pieces_feed(&way, stream, sizeof(stream) - 1, feed, &r);
        finish(&r);
        assert_int_equal(r.n, 7);
        assert_memory_equal(r.seen, "[a\0b][]", 7);
    } while (pieces_next(&way, sizeof(stream) - 1));
}

static void an_event_is_from_its_first_field_to_its_blank_line(void **state)
{
    static const char stream[] =
        "\xef\xbb\xbf: c\r\n\r\nid: 1\r\ndata: a\r\n\r\n: x\n\ndata: b\n\n";
    pieces_t way = {0, 0, 0};
    size_t n = sizeof(stream) - 1;

    (void)state;
    do {
        reader_t r;

        memset(&r, 0, sizeof(r));
        aigw_sse_init(&r.sse, 1);
        pieces_feed(&way, stream, n, feed, &r);
        assert_int_equal(r.starts, 2);
        assert_int_equal(r.ends, 2);
        assert_int_equal(r.start[0], 10);
        /* the LF of the last CRLF may come with the next feed */
        assert_in_range(r.end[0], 27, 28);
        assert_int_equal(r.start[1], 33);
        assert_int_equal(r.end[1], n);
        assert_true(aigw_sse_at_boundary(&r.sse));
    } while (pieces_next(&way, n));
}

static void a_start_is_told_only_if_asked_for(void **state)
{
    static const char stream[] = "id: 1\ndata: a\n\n\ndata: b\n\n";
    pieces_t way = {0, 0, 0};

    (void)state;
    do {
        reader_t r;

        memset(&r, 0, sizeof(r));
        aigw_sse_init(&r.sse, 0);
        pieces_feed(&way, stream, sizeof(stream) - 1, feed, &r);
        assert_string_equal(r.seen, "a]b]");
    } while (pieces_next(&way, sizeof(stream) - 1));
}

static void a_boundary_is_where_no_line_and_no_event_is_open(void **state)
{
    static const struct {
        const char *stream;
        int boundary;
    } rows[] = {
        {"", 1},         {"\n", 1},         {": x", 0},    {": x\n", 1},
        {"data: a\n", 0}, {"data: a\n\n", 1}, {"data: a\r\r", 1},
        {"d", 0},        {"\xef", 0},       {"\xef\xbb\xbf", 1},
        {"id: 1\n", 0},  {"data: a\n\n:", 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        reader_t r;

        memset(&r, 0, sizeof(r));
        aigw_sse_init(&r.sse, 1);
        feed(&r, rows[i].stream, strlen(rows[i].stream));
        assert_int_equal(aigw_sse_at_boundary(&r.sse), rows[i].boundary);
    }
}

static void a_line_of_megabytes_needs_no_room(void **state)
{
    enum { SIZE = 3 * 1024 * 1024 };
    char *stream = malloc(SIZE);
    aigw_sse_t sse;
    size_t step, data = 0;

    (void)state;
    assert_true(sizeof(aigw_sse_t) <= 8);
    memset(stream, 'x', SIZE);
    memcpy(stream, "data: ", 6);
    memcpy(stream + SIZE - 2, "\n\n", 2);
    for (step = 1000; step < SIZE; step = step * 7 + 1) {
        size_t at;
        int ends = 0;

        aigw_sse_init(&sse, 0);
        data = 0;
        for (at = 0; at < SIZE; at += step) {
            const char *p = stream + at;
            const char *end = at + step < SIZE ? p + step : stream + SIZE;
            aigw_slice_t run;

            while (p < end) {
                aigw_sse_token_t t = aigw_sse_next(&sse, &p, end, &run);

                data += t == AIGW_SSE_DATA ? run.n : 0;
                ends += t == AIGW_SSE_END;
            }
        }
        assert_int_equal(data, SIZE - 8);
        assert_int_equal(ends, 1);
    }
    free(stream);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_ends_with_lf_crlf_or_cr),
        cmocka_unit_test(one_space_after_the_colon_is_no_data),
        cmocka_unit_test(data_lines_of_an_event_are_joined_by_lf),
        cmocka_unit_test(comments_and_blank_lines_are_no_event),
        cmocka_unit_test(other_fields_are_read_over),
        cmocka_unit_test(a_byte_order_mark_is_taken_at_the_start_only),
        cmocka_unit_test(what_the_end_cuts_off_is_an_event_too),
        cmocka_unit_test(a_nul_is_a_byte_like_others),
        cmocka_unit_test(an_event_is_from_its_first_field_to_its_blank_line),
        cmocka_unit_test(a_start_is_told_only_if_asked_for),
        cmocka_unit_test(a_boundary_is_where_no_line_and_no_event_is_open),
        cmocka_unit_test(a_line_of_megabytes_needs_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
