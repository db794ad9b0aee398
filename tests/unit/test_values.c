/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of directives and the URL of an upstream: what is read, and
 * that everything else is refused whole.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <apr_general.h>
#include "config/url.h"
#include "config/values.h"

static apr_pool_t *pool;

static apr_interval_time_t duration(const char *text)
{
    apr_interval_time_t t = -1;

    assert_null(aigw_value_duration(text, &t));
    return t;
}

static void a_duration_has_ms_s_m_h_or_nothing(void **state)
{
    (void)state;
    assert_int_equal(duration("500ms"), 500000);
    assert_int_equal(duration("5s"), 5000000);
    assert_int_equal(duration("5"), 5000000);
    assert_int_equal(duration("20m"), 1200000000);
    assert_int_equal(duration("24h"), APR_INT64_C(86400000000));
    assert_int_equal(duration("0"), 0);
}

static void other_durations_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "s", "-1s", "+1s", " 1s", "1s ", "1 s", "1.5s", "1S", "1sec",
        "1d", "0x5s", "24h1", "25h", "86401", "86400001ms",
        "99999999999999999999", "9223372036854775807h", NULL
    };
    apr_interval_time_t t = 77;
    int i;

    (void)state;
    for (i = 0; bad[i]; i++) {
        const char *allowed = aigw_value_duration(bad[i], &t);
        assert_non_null(allowed);
        assert_non_null(strstr(allowed, "such as 5s"));
        assert_int_equal(t, 77);
    }
}

static void a_size_counts_in_1024s(void **state)
{
    static const struct {
        const char *text;
        apr_int64_t bytes;
    } good[] = {
        { "0", 0 }, { "1", 1 }, { "16k", 16384 }, { "16K", 16384 },
        { "64M", 67108864 }, { "1g", 1073741824 },
        { "9223372036854775807", APR_INT64_MAX },
        { "8589934591G", APR_INT64_C(9223372035781033984) },
    };
    apr_size_t i;

    (void)state;
    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        apr_off_t n = -1;
        assert_null(aigw_value_size(good[i].text, &n));
        assert_int_equal(n, good[i].bytes);
    }
}

static void other_sizes_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "M", "-1", "1MB", "1.5M", "1 M", "1t", "9223372036854775808",
        "8589934592G", "0x10", "1kk", NULL
    };
    apr_off_t n = 77;
    int i;

    (void)state;
    for (i = 0; bad[i]; i++) {
        assert_non_null(aigw_value_size(bad[i], &n));
        assert_int_equal(n, 77);
    }
}

static void a_flag_is_on_or_off_in_any_case(void **state)
{
    int flag = -1;

    (void)state;
    assert_null(aigw_value_flag("On", &flag));
    assert_int_equal(flag, 1);
    assert_null(aigw_value_flag("oFF", &flag));
    assert_int_equal(flag, 0);
    assert_non_null(aigw_value_flag("1", &flag));
    assert_non_null(aigw_value_flag("", &flag));
    assert_int_equal(flag, 0);
}

static void a_count_keeps_to_its_range(void **state)
{
    int n = 77;

    (void)state;
    assert_null(aigw_value_count("1", 1, 10, &n));
    assert_int_equal(n, 1);
    assert_null(aigw_value_count("10", 1, 10, &n));
    assert_int_equal(n, 10);
    assert_non_null(aigw_value_count("0", 1, 10, &n));
    assert_non_null(aigw_value_count("11", 1, 10, &n));
    assert_non_null(aigw_value_count("4294967297", 1, 10, &n));
    assert_non_null(aigw_value_count("5x", 1, 10, &n));
    assert_non_null(aigw_value_count("", 0, 10, &n));
    assert_int_equal(n, 10);
}

static void a_name_has_plain_letters_only(void **state)
{
    char name[66];

    (void)state;
    memset(name, 'a', 64);
    name[64] = '\0';
    assert_null(aigw_value_name(name));
    assert_null(aigw_value_name("Open-AI_2.eu"));
    name[64] = 'a';
    name[65] = '\0';
    assert_non_null(aigw_value_name(name));
    assert_non_null(aigw_value_name(""));
    assert_non_null(aigw_value_name("a b"));
    assert_non_null(aigw_value_name("a/b"));
    assert_non_null(aigw_value_name("a=b"));
    assert_non_null(aigw_value_name("caf\xc3\xa9"));
}

static void a_pair_is_split_at_its_first_equals_sign(void **state)
{
    const char *key = NULL, *value = NULL;

    (void)state;
    assert_int_equal(aigw_value_split(pool, "a=b=c", &key, &value), 1);
    assert_string_equal(key, "a");
    assert_string_equal(value, "b=c");
    assert_int_equal(aigw_value_split(pool, "a=", &key, &value), 1);
    assert_string_equal(value, "");
    assert_int_equal(aigw_value_split(pool, "=b", &key, &value), 0);
    assert_int_equal(aigw_value_split(pool, "ab", &key, &value), 0);
}

static void words_are_found_and_listed(void **state)
{
    static const char *const words[] = { "ask", "leave", "drop", NULL };

    (void)state;
    assert_int_equal(aigw_value_choice("leave", words), 1);
    assert_int_equal(aigw_value_choice("Leave", words), -1);
    assert_int_equal(aigw_value_choice("", words), -1);
    assert_string_equal(aigw_value_words(pool, words),
                        "ask, leave or drop");
}

static void assert_url(const char *text, int tls, const char *host, int port,
                       const char *field, const char *path)
{
    aigw_url_t url;

    assert_null(aigw_url_parse(text, &url, pool));
    assert_int_equal(url.tls, tls);
    assert_string_equal(url.host, host);
    assert_int_equal(url.port, port);
    assert_string_equal(url.host_field, field);
    assert_string_equal(url.path, path);
}

static void a_url_gives_host_port_and_path(void **state)
{
    (void)state;
    assert_url("https://api.openai.com/v1", 1, "api.openai.com", 443,
               "api.openai.com", "/v1");
    assert_url("https://api.openai.com/v1/", 1, "api.openai.com", 443,
               "api.openai.com", "/v1");
    assert_url("HTTPS://API.Example.ORG", 1, "api.example.org", 443,
               "api.example.org", "");
    assert_url("http://localhost:80/", 0, "localhost", 80, "localhost", "");
    assert_url("http://localhost:443", 0, "localhost", 443, "localhost:443",
               "");
    assert_url("https://h:8443/a/b.c/d~e", 1, "h", 8443, "h:8443",
               "/a/b.c/d~e");
    assert_url("http://127.0.0.1:65535/v1", 0, "127.0.0.1", 65535,
               "127.0.0.1:65535", "/v1");
    assert_url("http://[::1]/v1", 0, "::1", 80, "[::1]", "/v1");
    assert_url("https://[2001:DB8::1]:8000", 1, "2001:db8::1", 8000,
               "[2001:db8::1]:8000", "");
    assert_url("http://vllm_1:8000/v1", 0, "vllm_1", 8000, "vllm_1:8000",
               "/v1");
}

static void a_url_that_two_readers_could_read_differently_is_refused(
    void **state)
{
    static const char *const bad[] = {
        "", "api.openai.com/v1", "ftp://h/", "//h/v1", "http:/h", "http://",
        "https:///v1", "https://user@h/", "https://user:pass@h/v1",
        "https://h@evil/", "https://h?x=1", "https://h/v1?x", "https://h#x",
        "https://h/#", "https://h:/", "https://h:0/", "https://h:65536/",
        "https://h:4294967739/", "https://h:8a/", "https://h:-1/",
        "https://h:80:80/", "https://h\\evil/", "https://h /",
        "https://h/a b", "https://h/\x01", "https://h/%2e%2e/x",
        "https://h/a/../b", "https://h/a/..", "https://h/./a", "https://h/.",
        "https://h//a", "https://h/a//", "https://h//", "https://127.1/",
        "https://0x7f.1/", "https://2130706433/", "https://1.2.3.4.5/",
        "https://256.1.1.1/", "https://.h/", "https://h../", "https://-h/",
        "https://caf\xc3\xa9/", "https://h/\xc3\xa9", "https://[::1/",
        "https://[::1]x/", "https://[fe80::1%25eth0]/", "https://[h]/",
        "https://::1/", NULL
    };
    aigw_url_t url;
    int i;

    (void)state;
    for (i = 0; bad[i]; i++) {
        if (!aigw_url_parse(bad[i], &url, pool)) {
            fail_msg("%s was read as host %s, path %s", bad[i], url.host,
                     url.path);
        }
    }
}

static void a_url_is_shown_without_its_secrets(void **state)
{
    (void)state;
    assert_string_equal(aigw_url_shown(pool, "https://h/v1"),
                        "https://h/v1");
    assert_string_equal(aigw_url_shown(pool, "https://u:pw@h/v1"),
                        "https://...@h/v1");
    assert_string_equal(aigw_url_shown(pool, "https://u:p@w@h/v1?key=s"),
                        "https://...@h/v1");
    assert_string_equal(aigw_url_shown(pool, "https://h#s@x"), "https://h");
    assert_string_equal(aigw_url_shown(pool, "u:pw@h"), "...@h");
}

static int set_up(void **state)
{
    (void)state;
    apr_initialize();
    return apr_pool_create(&pool, NULL) != APR_SUCCESS;
}

static int tear_down(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    apr_terminate();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_has_ms_s_m_h_or_nothing),
        cmocka_unit_test(other_durations_are_refused),
        cmocka_unit_test(a_size_counts_in_1024s),
        cmocka_unit_test(other_sizes_are_refused),
        cmocka_unit_test(a_flag_is_on_or_off_in_any_case),
        cmocka_unit_test(a_count_keeps_to_its_range),
        cmocka_unit_test(a_name_has_plain_letters_only),
        cmocka_unit_test(a_pair_is_split_at_its_first_equals_sign),
        cmocka_unit_test(words_are_found_and_listed),
        cmocka_unit_test(a_url_gives_host_port_and_path),
        cmocka_unit_test(
            a_url_that_two_readers_could_read_differently_is_refused),
        cmocka_unit_test(a_url_is_shown_without_its_secrets),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
