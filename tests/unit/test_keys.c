/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key file: what a line says, what is refused with its line, who is
 * found.  SHA-256 of the test's keys was taken with sha256sum.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <apr_file_io.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "admit/keys.h"

/* of "one", "two" and "three" */
#define ONE "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
#define TWO "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
#define THREE \
    "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f"

static apr_pool_t *pool;

static aigw_keys_t *set_of(const char *text)
{
    aigw_keys_t *keys = NULL;
    const char *fault = aigw_keys_parse(&keys, aigw_slice(text, strlen(text)),
                                        "callers", pool);

    if (fault) {
        fail_msg("%s", fault);
    }
    return keys;
}

static const aigw_key_t *find(const aigw_keys_t *keys, const char *key)
{
    return aigw_keys_find(keys, aigw_slice(key, strlen(key)));
}

/* The text is refused, with a sentence that starts and goes on like this. */
static void assert_refused(const char *text, const char *start,
                           const char *word)
{
    aigw_keys_t *keys = NULL;
    const char *fault = aigw_keys_parse(&keys, aigw_slice(text, strlen(text)),
                                        "callers", pool);

    assert_non_null(fault);
    assert_null(keys);
    assert_memory_equal(fault, start, strlen(start));
    assert_non_null(strstr(fault, word));
}

static void a_key_is_found_by_its_text(void **state)
{
    aigw_keys_t *keys = set_of("# who may call\n"
                               "\n"
                               " \t\n"
                               "k1 acme sha256:" ONE "\n"
                               "  k2\tzeta   sha256:" TWO " \r\n"
                               "k3 a@b.c sha256:" THREE);

    (void)state;
    assert_int_equal(aigw_keys_count(keys), 3);
    assert_string_equal(find(keys, "one")->id, "k1");
    assert_string_equal(find(keys, "one")->tenant, "acme");
    assert_int_equal(find(keys, "one")->expires, 0);
    assert_string_equal(find(keys, "two")->id, "k2");
    assert_string_equal(find(keys, "two")->tenant, "zeta");
    assert_string_equal(find(keys, "three")->tenant, "a@b.c");
}

static void nobody_is_found_by_anything_else(void **state)
{
    aigw_keys_t *keys = set_of("k1 acme sha256:" ONE "\n");

    (void)state;
    assert_null(find(keys, "two"));
    assert_null(find(keys, ""));
    assert_null(find(keys, "one "));
    assert_null(find(keys, "sha256:" ONE));
    assert_null(find(keys, ONE));
    assert_null(find(aigw_keys_empty(pool), "one"));
    assert_null(find(aigw_keys_empty(pool), ""));
    assert_null(find(set_of(""), "one"));
}

static void every_key_of_many_is_found(void **state)
{
    char *text = "";
    aigw_keys_t *keys;
    int i, b;

    (void)state;
    for (i = 0; i < 1000; i++) {
        unsigned char hash[AIGW_KEY_HASH];
        char *key = apr_itoa(pool, i), *hex = "";

        assert_int_equal(aigw_key_hash(aigw_slice(key, strlen(key)), hash),
                         1);
        for (b = 0; b < AIGW_KEY_HASH; b++) {
            hex = apr_psprintf(pool, "%s%02X", hex, hash[b]);
        }
        text = apr_psprintf(pool, "%sid%d t sha256:%s\n", text, i, hex);
    }
    keys = set_of(text);
    assert_int_equal(aigw_keys_count(keys), 1000);
    for (i = 0; i < 1000; i++) {
        const aigw_key_t *key = find(keys, apr_itoa(pool, i));
        assert_non_null(key);
        assert_string_equal(key->id, apr_psprintf(pool, "id%d", i));
    }
    assert_null(find(keys, "1000"));
}

static void a_fault_names_file_and_line(void **state)
{
    static const char many[] = "k1 acme sha256:" ONE "\n#\n"
                               "k2 acme sha256:" TWO "\n";

    (void)state;
    assert_refused(apr_pstrcat(pool, many, "k1 b sha256:" THREE, NULL),
                   "callers:4: this key id", "once");
    assert_refused(apr_pstrcat(pool, many, "k3 b sha256:" ONE, NULL),
                   "callers:4: this hash", "once");
    assert_refused("k1", "callers:1: the tenant", "such as acme");
    assert_refused("k1 acme", "callers:1: the third word", "sha256:");
    assert_refused("k1 acme " ONE, "callers:1: the third word", "sha256:");
    assert_refused("k1 acme sha256:" ONE "0", "callers:1: the third word",
                   "64");
    assert_refused("k1 acme md5:" ONE, "callers:1: the third word", "64");
    assert_refused("k/1 acme sha256:" ONE, "callers:1: the key id",
                   "such as k1");
    assert_refused("k1 \"a b\" sha256:" ONE, "callers:1: the tenant", "64");
    assert_refused("k1 acme sha256:" ONE " expires=2030-01-01 x",
                   "callers:1: it has more than four words", "expires");
    assert_refused("k1 acme sha256:" ONE " 2030-01-01",
                   "callers:1: the word after the hash", "expires=2030");
    assert_refused("k1 acme sha256:" ONE " expires=soon",
                   "callers:1: the word after the hash", "expires=2030");
}

static void assert_date(const char *text, apr_int64_t seconds)
{
    apr_time_t when = -1;

    assert_int_equal(aigw_key_date(text, &when), 1);
    assert_int_equal(when, apr_time_from_sec(seconds));
}

static void a_date_is_its_first_moment_and_zones_count(void **state)
{
    (void)state;
    assert_date("1970-01-01", 0);
    assert_date("1970-01-02", 86400);
    assert_date("2000-02-29", 951782400);
    assert_date("2000-03-01", 951868800);
    assert_date("2026-11-30", 1795996800);
    assert_date("2100-03-01", APR_INT64_C(4107542400));
    assert_date("9999-12-31", APR_INT64_C(253402214400));
    assert_date("2026-11-30T17:02:03Z", 1796058123);
    assert_date("2026-11-30T17:02:03.999Z", 1796058123);
    assert_date("2026-11-30T18:32:03+01:30", 1796058123);
    assert_date("2026-11-30T09:02:03-08:00", 1796058123);
}

static void other_dates_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "2026", "2026-11", "2026-11-3", "2026-13-01", "2026-00-01",
        "2026-02-29", "2100-02-29", "2026-04-31", "2026-01-00", "1969-12-31",
        "26-11-30", "2026/11/30", "2026-11-30 ", "2026-11-30T",
        "2026-11-30T17:02:03", "2026-11-30T17:02Z", "2026-11-30T24:00:00Z",
        "2026-11-30T17:60:00Z", "2026-11-30T17:02:61Z",
        "2026-11-30T17:02:03.Z", "2026-11-30T17:02:03+0100",
        "2026-11-30T17:02:03+24:00", "2026-11-30T17:02:03Zx",
        "2026-11-30 17:02:03Z", "+026-11-30", NULL
    };
    apr_time_t when;
    int i;

    (void)state;
    for (i = 0; bad[i]; i++) {
        if (aigw_key_date(bad[i], &when)) {
            fail_msg("%s was read as a date", bad[i]);
        }
    }
}

static void an_expiry_is_kept_with_its_text(void **state)
{
    const aigw_key_t *key =
        find(set_of("k1 acme sha256:" ONE " expires=2026-11-30\n"), "one");

    (void)state;
    assert_int_equal(key->expires, apr_time_from_sec(1795996800));
    assert_string_equal(key->expires_text, "2026-11-30");
}

static const char *write_file(const char *text, int mode)
{
    char *path = apr_pstrdup(pool, "aigw-test-keys.XXXXXX");
    apr_file_t *file;

    assert_int_equal(apr_file_mktemp(&file, path,
                                     APR_FOPEN_CREATE | APR_FOPEN_WRITE
                                         | APR_FOPEN_EXCL, pool),
                     APR_SUCCESS);
    assert_int_equal(apr_file_write_full(file, text, strlen(text), NULL),
                     APR_SUCCESS);
    apr_file_close(file);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
    return path;
}

static void a_file_that_others_may_write_to_is_refused(void **state)
{
    const char *path = write_file("k1 acme sha256:" ONE "\n", 0600);
    aigw_keys_t *keys = NULL;
    const char *fault = aigw_keys_load(&keys, path, pool);

    (void)state;
    assert_null(fault);
    assert_string_equal(find(keys, "one")->id, "k1");
    assert_int_equal(chmod(path, 0602), 0);
    fault = aigw_keys_load(&keys, path, pool);
    assert_int_equal(apr_file_remove(path, pool), APR_SUCCESS);
    assert_non_null(fault);
    assert_non_null(strstr(fault, "mode 602"));
}

static void what_is_no_file_is_refused(void **state)
{
    aigw_keys_t *keys = NULL;
    const char *fault = aigw_keys_load(&keys, "aigw-no-such-file", pool);

    (void)state;
    assert_string_equal(fault, "aigw-no-such-file cannot be opened: No such "
                               "file or directory");
    assert_string_equal(aigw_keys_load(&keys, "/dev/null", pool),
                        "/dev/null is not a regular file");
    assert_null(keys);
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
        cmocka_unit_test(a_key_is_found_by_its_text),
        cmocka_unit_test(nobody_is_found_by_anything_else),
        cmocka_unit_test(every_key_of_many_is_found),
        cmocka_unit_test(a_fault_names_file_and_line),
        cmocka_unit_test(a_date_is_its_first_moment_and_zones_count),
        cmocka_unit_test(other_dates_are_refused),
        cmocka_unit_test(an_expiry_is_kept_with_its_text),
        cmocka_unit_test(a_file_that_others_may_write_to_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
