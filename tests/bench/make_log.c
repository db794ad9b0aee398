/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helps tests/bench/calc: `make_log peak PROGRAM ARG...` runs a program and
 * says on standard error how many KiB it took at its peak, which a larger
 * program that starts another cannot see.  `make_log KIND BYTES` writes whole
 * lines of at least so many bytes to standard output.  KIND is usage (the
 * lines of the module, by its own writer), json (the same with keys in any
 * order and blanks between) or combined (an access log).  The same arguments
 * give the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record.h"

#define START APR_TIME_C(1764547200000000) /* 2025-12-01 */
#define PARTS_MAX 64

static apr_uint64_t state = 20261130;

static unsigned next(unsigned below)
{
    state = state * APR_UINT64_C(6364136223846793005)
            + APR_UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static const char *one_of(const char *const *list, unsigned n)
{
    return list[next(n)];
}

#define ONE_OF(list) one_of(list, sizeof(list) / sizeof((list)[0]))

static const char *const models[] = {"gpt-4.1", "gpt-4.1-mini",
                                     "claude-sonnet-4-5", "gemini-2.5-flash",
                                     "deepseek-v3.2"};
static const char *const served[] = {"gpt-4.1-2025-04-14",
                                     "claude-sonnet-4-5-20250929",
                                     "deepseek-v3.2"};
static const char *const tenants[] = {"acme",  "globex", "initech", "umbrella",
                                      "stark", "wayne",  "hooli",   "tyrell"};
static const char *const ups[] = {"openai", "anthropic", "lab"};

static void fill(aigw_record_t *rec, apr_uint64_t number, char *texts)
{
    aigw_record_init(rec);
    snprintf(texts, 40, "aTB%016llxAAB", (unsigned long long)number * 977);
    snprintf(texts + 40, 40, "req_%024llx", (unsigned long long)state);
    snprintf(texts + 80, 40, "192.0.2.%u", next(250));
    rec->ts = START + (apr_time_t)number * 10800 + next(10000);
    rec->id = texts;
    rec->upstream_id = texts + 40;
    rec->client = texts + 80;
    rec->host = "ai.example.org";
    rec->tenant = ONE_OF(tenants);
    rec->key = "k1";
    rec->api = "openai.chat";
    rec->stream = (int)next(2);
    rec->model = ONE_OF(models);
    rec->served = ONE_OF(served);
    rec->upstream = ONE_OF(ups);
    rec->tries = 1;
    rec->status = rec->upstream_status = 200;
    rec->end = AIGW_END_COMPLETE;
    rec->finish = "stop";
    rec->tier = "default";
    rec->prices = "2026-11-30";
    rec->currency = "USD";
    rec->has_cost = 1;
}

static void fill_counts(aigw_record_t *rec)
{
    rec->usage.source = AIGW_USAGE_REPORTED;
    aigw_usage_set(&rec->usage, AIGW_U_INPUT_UNCACHED, next(5000));
    aigw_usage_set(&rec->usage, AIGW_U_CACHE_READ, next(5000));
    aigw_usage_set(&rec->usage, AIGW_U_OUTPUT, next(2000));
    aigw_usage_set(&rec->usage, AIGW_U_REASONING, 0);
    rec->cost = (aigw_money_t)next(1000000000) * 1000;
    rec->first_us = next(900000);
    rec->total_us = rec->first_us + next(9000000);
    rec->own_us = next(200);
    rec->events = next(400);
    rec->bytes_in = next(20000);
    rec->bytes_out = next(90000);
}

static apr_size_t usage_line(apr_uint64_t number, char *buf)
{
    aigw_record_t rec;
    char texts[120];

    fill(&rec, number, texts);
    fill_counts(&rec);
    return aigw_record_write(&rec, buf);
}

/* No string that is made here holds a comma: members end at commas. */
static apr_size_t json_line(apr_uint64_t number, char *out)
{
    char buf[AIGW_RECORD_MAX], *part[PARTS_MAX], *swap;
    apr_size_t len[PARTS_MAX], n = usage_line(number, buf), keep, at = 0;
    unsigned parts = 0, i, j;
    char *p = buf + 1, *end = buf + n - 2, *comma;

    for (; p < end; p = comma + 1) {
        comma = memchr(p, ',', (size_t)(end - p));
        comma = comma ? comma : end;
        part[parts] = p;
        len[parts++] = (apr_size_t)(comma - p);
    }
    for (i = parts - 1; i > 0; i--) {
        j = next(i + 1);
        swap = part[i];
        part[i] = part[j];
        part[j] = swap;
        keep = len[i];
        len[i] = len[j];
        len[j] = keep;
    }
    out[at++] = '{';
    for (i = 0; i < parts; i++) {
        apr_size_t key =
            (apr_size_t)((char *)memchr(part[i] + 1, '"', len[i]) - part[i])
            + 2; /* its colon too */

        memcpy(out + at, part[i], key);
        at += key;
        out[at++] = ' ';
        memcpy(out + at, part[i] + key, len[i] - key);
        at += len[i] - key;
        memcpy(out + at, ", ", 2);
        at += i + 1 < parts ? 2 : 0;
    }
    memcpy(out + at, "}\n", 2);
    return at + 2;
}

static apr_size_t combined_line(apr_uint64_t number, char *buf)
{
    static const char *const agents[] = {"curl/7.88.1", "python-requests/2.31",
                                         "Mozilla/5.0 (X11; Linux x86_64)"};
    unsigned second = (unsigned)(number / 30);

    return (apr_size_t)
        snprintf(buf, 1024,
                 "192.0.2.%u - - [%02u/Dec/2025:%02u:%02u:%02u +0000] \"POST "
                 "/v1/chat/completions HTTP/1.1\" 200 %u \"-\" \"%s\"\n",
                 next(250), 1 + second / 86400 % 31, second / 3600 % 24,
                 second / 60 % 60, second % 60, next(90000), ONE_OF(agents));
}

static int run_and_tell_peak(char **argv)
{
    struct rusage used;
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        execv(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child
        || getrusage(RUSAGE_CHILDREN, &used) != 0) {
        perror("make_log");
        return 1;
    }
    fprintf(stderr, "%ld\n", used.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    char line[2 * AIGW_RECORD_MAX];
    apr_uint64_t want = 0, have = 0, number;
    apr_size_t (*make)(apr_uint64_t, char *) = NULL;

    if (argc > 2 && strcmp(argv[1], "peak") == 0) {
        return run_and_tell_peak(argv + 2);
    }
    if (argc == 3) {
        want = strtoull(argv[2], NULL, 10);
        make = strcmp(argv[1], "usage") == 0      ? usage_line
               : strcmp(argv[1], "json") == 0     ? json_line
               : strcmp(argv[1], "combined") == 0 ? combined_line
                                                  : NULL;
    }
    if (!make) {
        fputs("usage: make_log usage|json|combined BYTES\n"
              "       make_log peak PROGRAM ARG...\n",
              stderr);
        return 2;
    }
    for (number = 1; have < want; number++) {
        apr_size_t n = make(number, line);

        if (fwrite(line, 1, n, stdout) != n) {
            perror("make_log");
            return 1;
        }
        have += n;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
