/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load generator's command line, and the table of latencies.  What is
 * wrong here ends the program: a benchmark of something else than what was
 * meant is worse than none.
 */
#define _GNU_SOURCE 1
#include "load.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: load --port N [OPTION]...\n"
    "Keeps connections to a gateway on loopback busy and checks every byte\n"
    "that comes back. One JSON object on stdout; status 1 if a request\n"
    "failed.\n\n"
    "  --port N          where the gateway listens on 127.0.0.1\n"
    "  --path PATH       default /v1/chat/completions\n"
    "  --key KEY         sent as a bearer token\n"
    "  --model TEXT      default gpt-4.1-2025-04-14; ending in '-': the\n"
    "                    request's tag is put behind it\n"
    "  --tag TEXT        what tags begin with (default t)\n"
    "  --connections N   default 1\n"
    "  --requests N      end after so many; with --seconds what comes first\n"
    "  --seconds S       begin no request later than this\n"
    "  --warmup S        what ends earlier is not in the window's figures\n"
    "  --timeout S       for one request (default 60)\n"
    "  --spread S        open the connections over this time\n"
    "  --seed N          of the choices (default 1)\n"
    "  --log FILE        a line for each request: tag, kind, status, end,\n"
    "                    contents, x-request-id, times sent (tabs between)\n"
    "  --kind 'WEIGHT FATE stream|json [NAME=VALUE]...'\n"
    "                    may be repeated. FATE: whole, slow, any, abort.\n"
    "                    NAME=VALUE goes to aigw-sim as sim:NAME=VALUE;\n"
    "                    after=MS: within which an abort comes\n";

static void wrong(const char *what, const char *value)
{
    fprintf(stderr, "load: %s: '%s' (--help says more)\n", what, value);
    exit(2);
}

static uint64_t number(const char *name, const char *value)
{
    char *end;
    unsigned long long n = strtoull(value, &end, 10);

    if (end == value || *end) {
        wrong(name, value);
    }
    return n;
}

static uint64_t milliseconds(const char *name, const char *value)
{
    char *end;
    double s = strtod(value, &end);

    if (end == value || *end || s < 0) {
        wrong(name, value);
    }
    return (uint64_t)(s * 1000 + 0.5);
}

static fate_t fate(const char *word)
{
    static const char *const names[] = {"whole", "slow", "any", "abort"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(word, names[i]) == 0) {
            return (fate_t)i;
        }
    }
    wrong("no fate of a kind", word);
    return FATE_ANY;
}

static void kind_word(kind_t *k, const char *word)
{
    size_t n = strlen(k->text);

    if (strncmp(word, "after=", 6) == 0) {
        k->after = number("after", word + 6);
        return;
    }
    if (strncmp(word, "events=", 7) == 0) {
        k->events = number("events", word + 7);
    }
    if (!strchr(word, '=') || n + strlen(word) + 8 > sizeof(k->text)) {
        wrong("no NAME=VALUE of a kind", word);
    }
    snprintf(k->text + n, sizeof(k->text) - n, "%ssim:%s", n ? " " : "", word);
}

static void add_kind(options_t *o, const char *value)
{
    kind_t *k = &o->kinds[o->n_kinds];
    char *copy = strdup(value), *rest = copy, *word;
    int place = 0;

    if (o->n_kinds == KINDS_MAX || !copy) {
        wrong("one kind too many", value);
    }
    k->after = 100;
    for (; (word = strsep(&rest, " ")) != NULL; place++) {
        if (place == 0) {
            k->weight = number("weight of a kind", word);
        }
        else if (place == 1) {
            k->fate = fate(word);
        }
        else if (place == 2) {
            k->stream = strcmp(word, "stream") == 0;
        }
        else {
            kind_word(k, word);
        }
    }
    free(copy);
    if (place < 3) {
        wrong("a kind says weight, fate and stream or json", value);
    }
    o->weights += k->weight;
    o->n_kinds++;
}

/* clang-format off */
static const struct option longs[] = {
    {"port", 1, NULL, 'p'}, {"path", 1, NULL, 'P'}, {"key", 1, NULL, 'k'},
    {"model", 1, NULL, 'm'}, {"tag", 1, NULL, 't'},
    {"connections", 1, NULL, 'c'}, {"requests", 1, NULL, 'n'},
    {"seconds", 1, NULL, 's'}, {"warmup", 1, NULL, 'w'},
    {"timeout", 1, NULL, 'T'}, {"spread", 1, NULL, 'S'},
    {"seed", 1, NULL, 'r'}, {"log", 1, NULL, 'l'}, {"kind", 1, NULL, 'K'},
    {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
/* clang-format on */

static void open_log(options_t *o, const char *name)
{
    o->log = fopen(name, "w");
    if (!o->log) {
        wrong("cannot be written", name);
    }
}

static void option(options_t *o, int c)
{
    switch (c) {
    case 'p':
        o->port = (int)number("port", optarg);
        break;
    case 'P':
        o->path = optarg;
        break;
    case 'k':
        o->key = optarg;
        break;
    case 'm':
        o->model = optarg;
        break;
    case 't':
        o->tag = optarg;
        break;
    case 'c':
        o->connections = number("connections", optarg);
        break;
    case 'n':
        o->requests = number("requests", optarg);
        break;
    case 's':
        o->window_ms = milliseconds("seconds", optarg);
        break;
    case 'w':
        o->warmup_ms = milliseconds("warmup", optarg);
        break;
    case 'T':
        o->timeout_ms = milliseconds("timeout", optarg);
        break;
    case 'S':
        o->spread_ms = milliseconds("spread", optarg);
        break;
    case 'r':
        o->seed = number("seed", optarg);
        break;
    case 'l':
        open_log(o, optarg);
        break;
    case 'K':
        add_kind(o, optarg);
        break;
    case 'h':
        fputs(help, stdout);
        exit(0);
    default:
        exit(2);
    }
}

void options_read(options_t *o, int argc, char **argv)
{
    int c;

    memset(o, 0, sizeof(*o));
    o->path = "/v1/chat/completions";
    o->key = "none";
    o->tag = "t";
    o->model = "gpt-4.1-2025-04-14";
    o->connections = 1;
    o->timeout_ms = 60000;
    o->seed = 1;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        option(o, c);
    }
    if (optind < argc) {
        wrong("no option", argv[optind]);
    }
    if (!o->port || !o->weights || !(o->requests || o->window_ms)) {
        wrong("missing", "--port, --kind, and --requests or --seconds");
    }
    if (!o->window_ms) {
        o->window_ms = UINT64_MAX / 2000000;
    }
    if (!o->requests) {
        o->requests = UINT64_MAX;
    }
}

static size_t step(uint64_t us)
{
    size_t octave = 0;

    while (us >> octave >= 128) {
        octave++;
    }
    return octave * 64 + (size_t)(us >> octave);
}

void histogram_add(histogram_t *h, uint64_t us)
{
    size_t i = step(us);

    h->n++;
    if (us > h->max) {
        h->max = us;
    }
    if (i < sizeof(h->at) / sizeof(h->at[0])) {
        h->at[i]++;
    }
}

uint64_t histogram_percentile(const histogram_t *h, double percent)
{
    uint64_t want = (uint64_t)((double)h->n * percent / 100 + 0.5), seen = 0;
    size_t i;

    for (i = 0; i < sizeof(h->at) / sizeof(h->at[0]); i++) {
        seen += h->at[i];
        if (seen && seen >= want) {
            return i < 128 ? i : (uint64_t)(i % 64 + 64) << (i / 64 - 1);
        }
    }
    return h->max;
}
