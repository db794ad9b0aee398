/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of all commands.  A value that is not understood is refused with a
 * sentence that names the option, what was read and what is allowed; nothing
 * is guessed and nothing is clamped.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "options.h"

#define COUNT_LIMIT (APR_UINT64_C(1) << 53)

enum {
    OPT_BY = 256,
    OPT_FORMAT,
    OPT_ROUND,
    OPT_DIGITS,
    OPT_PRICES,
    OPT_SINCE,
    OPT_UNTIL,
    OPT_TZ,
    OPT_STRICT,
    OPT_THREADS,
    OPT_LOG_FORMAT,
    OPT_ROTATED,
    OPT_FOLLOW,
    OPT_STATE,
    OPT_DUPLICATES,
    OPT_GROUPS,
    OPT_CALLS,
    OPT_DAYS,
    OPT_INPUT,
    OPT_OUTPUT,
    OPT_CACHED,
    OPT_MODEL,
    OPT_RATE,
    OPT_RELAY,
    OPT_ON,
    OPT_HELP
};

static const char general_help[] =
    "Usage: aigw-calc COMMAND [OPTION...] [FILE...]\n"
    "\n"
    "Reads the usage logs of mod_aigw and prices, and prints tables of them.\n"
    "Money is exact: it is rounded only when it is printed.\n"
    "\n"
    "Commands:\n"
    "  usage    what was used and what it cost, by day, model, tenant, ...\n"
    "  prices   what a month would cost, by model, from the price file\n"
    "  audit    a published table against its own stated inputs\n"
    "  fx       what a top-up really costs, by model\n"
    "  perf     two logs compared: before and after a change\n"
    "  servers  how many machines a gain in capacity saves\n"
    "  breakeven\n"
    "           when an outlay is paid back\n"
    "  providers\n"
    "           what providers state, and what logs measured\n"
    "  invoice  a month's bill of one tenant\n"
    "  forecast what this month will have cost, with a range\n"
    "  report   one page of HTML with charts and tables\n"
    "\n"
    "  aigw-calc COMMAND --help    the command's options\n"
    "  aigw-calc --version         the version\n"
    "\n"
    "Exit status: 0 done; 1 bad lines under --strict; 2 wrong command line;\n"
    "3 a file can't be read or is wrong; 4 a figure is too large; 5 the "
    "result\n"
    "could not be written.\n";

/* Of every command that reads logs. */
#define INPUT_HELP                                                           \
    "  --log-format=F    access logs: common, combined, vhost_combined or\n" \
    "                    the LogFormat of httpd.conf, notes included\n"      \
    "  --rotated         the rotated logs beside each FILE too, by age\n"    \
    "  --strict          stop at the first bad line, with status 1\n"        \
    "  --keep-duplicates count a record again whose id was there before\n"   \
    "  --threads=N       1 (default) to 64; the result is the same\n"

static const char usage_help[] =
    "Usage: aigw-calc usage [OPTION...] FILE...\n"
    "\n"
    "Sums usage logs. FILE is a log that AIGWUsageLog wrote, packed with "
    "gzip\n"
    "or zstd or not; '-' is standard input. Bad lines are counted and the "
    "first\n"
    "ones are named.\n"
    "\n"
    "  --by=LIST         group by these, in this order: hour, day, week,\n"
    "                    month, model, served, tenant, key, host, upstream,\n"
    "                    api (default: day,model)\n"
    "  --since=DAY       from this day on, itself included (2026-11-30)\n"
    "  --until=DAY       up to this day, itself included\n"
    "  --tz=ZONE         whose days: local (default), UTC, Europe/Berlin, "
    "...\n"
    "  --prices=FILE     price each record anew, at the price in force when "
    "it\n"
    "                    was made, instead of taking the cost it states\n"
    "  --format=FORMAT   text (default), markdown, html, json, csv\n"
    "  --digits=N        decimals of money, 0 to 15 (default: 6 in text; "
    "json\n"
    "                    and csv state the exact value)\n"
    "  --round=MODE      half-even (default), half-up, trunc\n" INPUT_HELP
    "  --follow          wait for more lines until SIGINT or SIGTERM\n"
    "  --state=FILE      only lines that no run with this FILE has read\n"
    "  --max-groups=N    further groups are summed in (other) (100000)\n"
    "  --help            this text\n"
    "\n"
    "Example: aigw-calc usage --by=tenant,model --since=2026-11-01 "
    "usage.log\n";

static const char prices_help[] =
    "Usage: aigw-calc prices [OPTION...] [FILE...]\n"
    "\n"
    "What a month costs per model, from the price file. With usage logs as\n"
    "FILE, the tokens of a call are the mean of the calls in them.\n"
    "\n"
    "  --calls-per-day=N     calls a day (default: 5000000)\n"
    "  --input=N             input tokens a call (default: 800)\n"
    "  --cached=N            how many of them are read from a cache (0)\n"
    "  --output=N            output tokens a call (default: 400)\n"
    "  --days=N              days of the month (default: 30)\n"
    "  --model=NAME          only this model; may be given again\n"
    "  --prices=FILE         the price file (default: the installed one)\n"
    "  --on=DAY              prices in force on this day (default: today)\n"
    "  --rate=USD/CNY=7.3    also state the month in another currency\n"
    "  --relay-rate=USD/CNY=1  and at a second rate, with the difference\n"
    "  --format=FORMAT       text (default), markdown, html, json, csv\n"
    "  --digits=N            decimals of money, 0 to 15 (default: 2 in text;\n"
    "                        json and csv state the exact value)\n"
    "  --round=MODE          half-even (default), half-up, trunc\n" INPUT_HELP
    "  --help                this text\n"
    "\n"
    "Example: aigw-calc prices --calls-per-day=10000 --model=gpt-4.1\n";

/* clang-format off */
/* Of every command that reads logs. */
#define INPUT_OPTIONS \
    {"log-format", required_argument, NULL, OPT_LOG_FORMAT}, \
    {"rotated", no_argument, NULL, OPT_ROTATED}, \
    {"strict", no_argument, NULL, OPT_STRICT}, \
    {"keep-duplicates", no_argument, NULL, OPT_DUPLICATES}, \
    {"threads", required_argument, NULL, OPT_THREADS}

static const struct option usage_options[] = {
    {"by", required_argument, NULL, OPT_BY},
    {"since", required_argument, NULL, OPT_SINCE},
    {"until", required_argument, NULL, OPT_UNTIL},
    {"tz", required_argument, NULL, OPT_TZ},
    {"prices", required_argument, NULL, OPT_PRICES},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"digits", required_argument, NULL, OPT_DIGITS},
    {"round", required_argument, NULL, OPT_ROUND},
    INPUT_OPTIONS,
    {"follow", no_argument, NULL, OPT_FOLLOW},
    {"state", required_argument, NULL, OPT_STATE},
    {"max-groups", required_argument, NULL, OPT_GROUPS},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0}};

static const struct option prices_options[] = {
    {"calls-per-day", required_argument, NULL, OPT_CALLS},
    {"input", required_argument, NULL, OPT_INPUT},
    {"cached", required_argument, NULL, OPT_CACHED},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"days", required_argument, NULL, OPT_DAYS},
    {"model", required_argument, NULL, OPT_MODEL},
    {"prices", required_argument, NULL, OPT_PRICES},
    {"on", required_argument, NULL, OPT_ON},
    {"rate", required_argument, NULL, OPT_RATE},
    {"relay-rate", required_argument, NULL, OPT_RELAY},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"digits", required_argument, NULL, OPT_DIGITS},
    {"round", required_argument, NULL, OPT_ROUND},
    INPUT_OPTIONS,
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0}};
/* clang-format on */

void aigw_options_help(FILE *out)
{
    fputs(general_help, out);
}

/* -- values -------------------------------------------------------------- */

/* Each returns NULL, or what is allowed. */

static const char *read_word(const char *text, const char *const *words,
                             int *index)
{
    for (*index = 0; words[*index]; (*index)++) {
        if (strcmp(words[*index], text) == 0) {
            return NULL;
        }
    }
    return "";
}

const char *aigw_options_format(aigw_options_t *opt, const char *text)
{
    static const char *const words[] = {"text",     "json", "csv",
                                        "markdown", "html", NULL};
    int i;

    if (read_word(text, words, &i)) {
        return "must be text, markdown, html, json or csv";
    }
    opt->format = (aigw_format_t)i;
    return NULL;
}

const char *aigw_options_round(aigw_options_t *opt, const char *text)
{
    static const char *const words[] = {"half-even", "half-up", "trunc", NULL};
    int i;

    if (read_word(text, words, &i)) {
        return "must be half-even, half-up or trunc";
    }
    opt->round = (aigw_round_t)i;
    return NULL;
}

const char *aigw_options_digits(aigw_options_t *opt, const char *text)
{
    apr_uint64_t n;

    if (aigw_slice_u64(aigw_slice(text, strlen(text)), &n) != AIGW_OK
        || n > AIGW_MONEY_SCALE) {
        return "must be a whole number from 0 to 15";
    }
    opt->digits = (int)n;
    return NULL;
}

static const char *read_count(const char *text, apr_uint64_t *n)
{
    if (aigw_slice_u64(aigw_slice(text, strlen(text)), n) != AIGW_OK
        || *n > COUNT_LIMIT) {
        return "must be a whole number from 0 to 9007199254740992";
    }
    return NULL;
}

static const char *read_day(const char *text, aigw_day_t *day)
{
    return aigw_day_parse(text, day) == AIGW_OK
               ? NULL
               : "must be a day such as 2026-11-30";
}

static const char *read_rate(const char *text, aigw_rate_t *rate, int *has)
{
    switch (aigw_rate_parse(text, rate)) {
    case AIGW_OK:
        *has = 1;
        return NULL;
    case AIGW_TOO_BIG:
        return "must have at most 9 decimals and be below 1000000000";
    default:
        return "must be a rate above 0 such as USD/CNY=7.3: one USD is 7.3 "
               "CNY";
    }
}

static int find_by(const char *word, apr_size_t n)
{
    int i;

    for (i = 0; i < AIGW_BY_MAX; i++) {
        if (aigw_slice_is(aigw_slice(word, n), aigw_by_name((aigw_by_t)i))) {
            return i;
        }
    }
    return -1;
}

static const char *read_by(aigw_options_t *opt, const char *text)
{
    static const char allowed[] = "must be a list of hour, day, week, "
                                  "month, model, served, tenant, key, "
                                  "host, upstream and api, each once";
    unsigned seen = 0;
    apr_size_t n;
    int by;

    for (opt->n_by = 0;; text += n + 1) {
        n = strcspn(text, ",");
        by = find_by(text, n);
        if (by < 0 || (seen & 1u << by)) {
            return allowed;
        }
        seen |= 1u << by;
        opt->by[opt->n_by++] = (aigw_by_t)by;
        if (!text[n]) {
            return NULL;
        }
    }
}

/* -- one option ---------------------------------------------------------- */

static const char *read_common(aigw_options_t *opt, int which,
                               const char *value)
{
    switch (which) {
    case OPT_FORMAT:
        return aigw_options_format(opt, value);
    case OPT_ROUND:
        return aigw_options_round(opt, value);
    case OPT_DIGITS:
        return aigw_options_digits(opt, value);
    default:
        opt->prices = value;
        return NULL;
    }
}

static const char *read_threads(aigw_options_t *opt, const char *text)
{
    apr_uint64_t n;

    if (aigw_slice_u64(aigw_slice(text, strlen(text)), &n) != AIGW_OK || n < 1
        || n > 64) {
        return "must be a whole number from 1 to 64";
    }
    opt->threads = (int)n;
    return NULL;
}

/* Options of how logs are read; every command that reads some has them. */
static const char *read_input(aigw_options_t *opt, int which,
                              const char *value)
{
    switch (which) {
    case OPT_THREADS:
        return read_threads(opt, value);
    case OPT_LOG_FORMAT:
        opt->log_format = value;
        return NULL;
    case OPT_STATE:
        opt->state = value;
        return *value ? NULL : "must be the name of a file";
    case OPT_ROTATED:
        opt->rotated = 1;
        return NULL;
    case OPT_FOLLOW:
        opt->follow = 1;
        return NULL;
    case OPT_DUPLICATES:
        opt->keep_duplicates = 1;
        return NULL;
    case OPT_STRICT:
        opt->strict = 1;
        return NULL;
    default:
        return read_common(opt, which, value);
    }
}

static const char *read_usage(aigw_options_t *opt, int which,
                              const char *value)
{
    switch (which) {
    case OPT_GROUPS:
        return read_count(value, &opt->max_groups);
    case OPT_BY:
        return read_by(opt, value);
    case OPT_SINCE:
        return read_day(value, &opt->since);
    case OPT_UNTIL:
        return read_day(value, &opt->until);
    case OPT_TZ:
        opt->tz = value;
        return aigw_day_zone(value) == AIGW_OK
                   ? NULL
                   : "must be local, UTC or a name of the time zone data "
                     "base such as Europe/Berlin (Debian package tzdata)";
    default:
        return read_input(opt, which, value);
    }
}

static const char *read_tokens(aigw_options_t *opt, const char *value,
                               apr_uint64_t *n)
{
    opt->tokens_given = 1;
    return read_count(value, n);
}

static const char *read_prices(aigw_options_t *opt, int which,
                               const char *value)
{
    switch (which) {
    case OPT_CALLS:
        return read_count(value, &opt->calls);
    case OPT_DAYS:
        return read_count(value, &opt->days);
    case OPT_INPUT:
        return read_tokens(opt, value, &opt->input);
    case OPT_OUTPUT:
        return read_tokens(opt, value, &opt->output);
    case OPT_CACHED:
        return read_tokens(opt, value, &opt->cached);
    case OPT_MODEL:
        APR_ARRAY_PUSH(opt->models, const char *) = value;
        return NULL;
    case OPT_ON:
        return read_day(value, &opt->on);
    case OPT_RATE:
        return read_rate(value, &opt->rate, &opt->has_rate);
    case OPT_RELAY:
        return read_rate(value, &opt->relay, &opt->has_relay);
    default:
        return read_input(opt, which, value);
    }
}

/* -- a command line ------------------------------------------------------ */

typedef const char *(*read_option_t)(aigw_options_t *opt, int which,
                                     const char *value);

typedef struct {
    const char *name;
    const char *help;
    const struct option *options;
    read_option_t read;
} command_line_t;

static aigw_rc_t refuse(const command_line_t *c, const char *what,
                        const char *value, const char *allowed)
{
    fprintf(stderr, "aigw-calc %s: %s%s%s%s %s\n", c->name, value ? "--" : "",
            what, value ? "=" : "", value ? value : "", allowed);
    fprintf(stderr, "Try 'aigw-calc %s --help'.\n", c->name);
    return AIGW_REFUSED;
}

/* getopt keeps a cluster such as -xy in hand until its last letter. */
static const char *unknown_option(char **argv)
{
    static char letter[3] = "-?";

    if (optopt > 0 && optopt < 256) {
        letter[1] = (char)optopt;
        return letter;
    }
    return argv[optind - 1];
}

static aigw_rc_t read_all(const command_line_t *c, aigw_options_t *opt,
                          int argc, char **argv)
{
    const char *allowed;
    int which, index = 0;

    optind = 1;
    opterr = 0;
    while ((which = getopt_long(argc, argv, ":", c->options, &index)) != -1) {
        if (which == OPT_HELP) {
            fputs(c->help, stdout);
            return AIGW_DONE;
        }
        if (which == ':') {
            return refuse(c, argv[optind - 1], NULL, "needs a value");
        }
        if (which == '?') {
            return refuse(c, unknown_option(argv), NULL,
                          "is not an option of this command");
        }
        allowed = c->read(opt, which, optarg);
        if (allowed) {
            return refuse(c, c->options[index].name, optarg, allowed);
        }
    }
    opt->files = (const char **)argv + optind;
    opt->n_files = argc - optind;
    return AIGW_OK;
}

void aigw_options_defaults(aigw_options_t *opt, apr_pool_t *pool)
{
    memset(opt, 0, sizeof(*opt));
    opt->digits = -1;
    opt->tz = "local";
    opt->threads = 1;
    opt->max_groups = AIGW_GROUPS_MAX;
    opt->by[0] = AIGW_BY_DAY;
    opt->by[1] = AIGW_BY_MODEL;
    opt->n_by = 2;
    opt->calls = 5000000;
    opt->input = 800;
    opt->output = 400;
    opt->days = 30;
    opt->models = apr_array_make(pool, 4, sizeof(const char *));
}

static int reads_stdin(const aigw_options_t *opt)
{
    int i;

    for (i = 0; i < opt->n_files; i++) {
        if (strcmp(opt->files[i], "-") == 0) {
            return 1;
        }
    }
    return 0;
}

aigw_rc_t aigw_options_usage(aigw_options_t *opt, int argc, char **argv,
                             apr_pool_t *pool)
{
    static const command_line_t c = {"usage", usage_help, usage_options,
                                     read_usage};
    aigw_rc_t rc;

    aigw_options_defaults(opt, pool);
    rc = read_all(&c, opt, argc, argv);
    if (rc == AIGW_OK && opt->n_files == 0) {
        return refuse(&c, "no log was named:", NULL,
                      "give files, or '-' for standard input");
    }
    if (rc == AIGW_OK && (opt->follow || opt->state) && reads_stdin(opt)) {
        return refuse(&c, "--follow and --state", NULL,
                      "need files: standard input can't be looked at again");
    }
    if (rc == AIGW_OK && opt->since && opt->until && opt->since > opt->until) {
        return refuse(&c, "--since", NULL, "is later than --until");
    }
    return rc;
}

static aigw_rc_t check_rates(const command_line_t *c,
                             const aigw_options_t *opt)
{
    if (opt->has_relay && !opt->has_rate) {
        return refuse(c, "--relay-rate", NULL,
                      "needs --rate beside it, to differ from");
    }
    if (opt->has_relay
        && (strcmp(opt->rate.from, opt->relay.from) != 0
            || strcmp(opt->rate.to, opt->relay.to) != 0)) {
        return refuse(c, "--relay-rate", NULL,
                      "must be between the same currencies as --rate");
    }
    return AIGW_OK;
}

aigw_rc_t aigw_options_prices(aigw_options_t *opt, int argc, char **argv,
                              apr_pool_t *pool)
{
    static const command_line_t c = {"prices", prices_help, prices_options,
                                     read_prices};
    aigw_rc_t rc;

    aigw_options_defaults(opt, pool);
    rc = read_all(&c, opt, argc, argv);
    if (rc != AIGW_OK) {
        return rc;
    }
    if (opt->tokens_given && opt->n_files) {
        return refuse(&c, "--input, --output and --cached", NULL,
                      "do not go with logs, which state the tokens");
    }
    if (opt->cached > opt->input) {
        return refuse(&c, "--cached", NULL,
                      "is a part of --input and can't be more");
    }
    return check_rates(&c, opt);
}
