/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AIGWUpstream: an account at a provider, a name, a URL and key=value pairs.
 * The pairs are rows of one table.  A value is shown in messages unless it
 * may be secret: what follows key=, a word without '=', and a pair of
 * unknown name are never repeated.
 */
#include "setters.h"
#include "secret.h"
#include "url.h"
#include "values.h"

#include <stddef.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <openssl/crypto.h>

typedef struct option_t option_t;
struct option_t {
    const char *name;
    const char *(*set)(cmd_parms *cmd, aigw_upstream_t *up,
                       const option_t *opt, const char *value);
    apr_size_t at; /* offset of the member that it sets */
    int may_be_zero;
};

#define MEMBER(up, opt, type) ((type *)((char *)(up) + (opt)->at))

/* The answer of an option's setter: what is allowed; the caller adds what
 * was read. */

static const char *set_duration(cmd_parms *cmd, aigw_upstream_t *up,
                                const option_t *opt, const char *value)
{
    apr_interval_time_t *to = MEMBER(up, opt, apr_interval_time_t);
    const char *allowed = aigw_value_duration(value, to);

    (void)cmd;
    if (!allowed && *to == 0 && !opt->may_be_zero) {
        return "a time longer than 0, such as 5s";
    }
    return allowed;
}

static const char *set_flag(cmd_parms *cmd, aigw_upstream_t *up,
                            const option_t *opt, const char *value)
{
    (void)cmd;
    return aigw_value_flag(value, MEMBER(up, opt, int));
}

static const char *set_max(cmd_parms *cmd, aigw_upstream_t *up,
                           const option_t *opt, const char *value)
{
    (void)cmd;
    return aigw_value_count(value, 0, 1000000, MEMBER(up, opt, int))
               ? "a whole number from 0 (no bound) to 1000000, such as 200"
               : NULL;
}

static const char *set_usage(cmd_parms *cmd, aigw_upstream_t *up,
                             const option_t *opt, const char *value)
{
    static const char *const words[] = {"leave", "ask", NULL};
    int choice = aigw_value_choice(value, words);

    (void)cmd;
    *MEMBER(up, opt, int) = choice;
    return choice < 0 ? "ask or leave" : NULL;
}

static const char *set_dialect(cmd_parms *cmd, aigw_upstream_t *up,
                               const option_t *opt, const char *value)
{
    (void)cmd;
    (void)opt;
    up->dialect = aigw_dialect_find(value);
    return up->dialect ? NULL : "openai, anthropic, gemini or ollama";
}

static const char *set_profile(cmd_parms *cmd, aigw_upstream_t *up,
                               const option_t *opt, const char *value)
{
    int choice = aigw_value_choice(value, aigw_dialect_profiles);

    (void)opt;
    if (choice < 0) {
        return aigw_value_words(cmd->pool, aigw_dialect_profiles);
    }
    up->profile = aigw_dialect_profiles[choice];
    return NULL;
}

static const char *set_ca(cmd_parms *cmd, aigw_upstream_t *up,
                          const option_t *opt, const char *value)
{
    (void)opt;
    if (*value == '\0') {
        return "a PEM file, such as conf/provider-ca.pem";
    }
    up->ca = ap_server_root_relative(cmd->pool, value);
    return up->ca ? NULL : "a path, such as conf/provider-ca.pem";
}

static const char *set_proxy(cmd_parms *cmd, aigw_upstream_t *up,
                             const option_t *opt, const char *value)
{
    aigw_url_t url;

    (void)opt;
    if (aigw_url_parse(value, &url, cmd->pool) || url.tls || *url.path) {
        return "http://host:port of a forward proxy, such as "
               "proxy=http://10.0.0.3:3128";
    }
    up->proxy_host = url.host;
    up->proxy_port = url.port;
    return NULL;
}

/* Fields that frame a message, name its ends or carry credentials are the
 * gateway's own business. */
static int is_own_field(const char *name)
{
    /* clang-format off */
    static const char *const own[] = {
        "connection", "keep-alive", "te", "trailer", "transfer-encoding",
        "upgrade", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "content-length", "host", "expect",
        "accept-encoding", "content-encoding", "authorization", "x-api-key",
        "api-key", "x-goog-api-key", NULL
    };
    /* clang-format on */
    return aigw_value_choice(name, own) >= 0;
}

static int is_token(const char *text)
{
    const char *p;

    for (p = text; *p; p++) {
        if (!apr_isascii(*p)
            || !(apr_isalnum(*p) || strchr("!#$%&'*+-.^_`|~", *p))) {
            return 0;
        }
    }
    return p > text;
}

static const char *set_header(cmd_parms *cmd, aigw_upstream_t *up,
                              const option_t *opt, const char *value)
{
    static const char allowed[] =
        "pass: and names of header fields with commas between them, such as "
        "header=pass:x-trace-id,x-team";
    char *names, *name, *last = NULL;

    (void)opt;
    if (strncmp(value, "pass:", 5) != 0 || value[5] == '\0') {
        return allowed;
    }
    names = apr_pstrdup(cmd->pool, value + 5);
    ap_str_tolower(names);
    for (name = apr_strtok(names, ",", &last); name;
         name = apr_strtok(NULL, ",", &last)) {
        if (!is_token(name)) {
            return allowed;
        }
        if (is_own_field(name)) {
            return apr_psprintf(cmd->pool,
                                "any field that the gateway does "
                                "not set itself, and %s is one that it does",
                                name);
        }
        APR_ARRAY_PUSH(up->pass, const char *) = name;
    }
    return NULL;
}

/* clang-format off */
static const option_t options[] = {
    { "dialect", set_dialect, 0, 0 },
    { "profile", set_profile, 0, 0 },
    { "ca", set_ca, 0, 0 },
    { "verify", set_flag, offsetof(aigw_upstream_t, verify), 0 },
    { "connect", set_duration, offsetof(aigw_upstream_t, connect), 0 },
    { "first", set_duration, offsetof(aigw_upstream_t, first), 0 },
    { "idle", set_duration, offsetof(aigw_upstream_t, idle), 0 },
    { "total", set_duration, offsetof(aigw_upstream_t, total), 0 },
    { "keepalive", set_duration, offsetof(aigw_upstream_t, keepalive), 1 },
    { "max", set_max, offsetof(aigw_upstream_t, max), 0 },
    { "header", set_header, 0, 0 },
    { "proxy", set_proxy, 0, 0 },
    { "usage", set_usage, offsetof(aigw_upstream_t, ask_usage), 0 },
    { NULL, NULL, 0, 0 }
};
/* clang-format on */

/* pconf's memory is used again after a restart. */
static apr_status_t cleanse(void *text)
{
    OPENSSL_cleanse(text, strlen(text));
    return APR_SUCCESS;
}

static const char *set_key(cmd_parms *cmd, aigw_upstream_t *up,
                           const char *spec)
{
    aigw_secret_t secret;
    const char *fault =
        aigw_secret_read(spec, &secret, cmd->pool, cmd->temp_pool);

    if (fault) {
        return apr_psprintf(cmd->pool, "AIGWUpstream %s: key=: %s", up->name,
                            fault);
    }
    up->key_file = secret.from;
    up->key_open = secret.open_to_others;
    up->auth_line = secret.key ? secret.key : "";
    return NULL;
}

/* The field in which a provider wants its key. */
static const char *key_field(const aigw_upstream_t *up)
{
    if (up->profile && strcmp(up->profile, "azure") == 0) {
        return "api-key: ";
    }
    if (strcmp(up->dialect->language, "anthropic") == 0) {
        return "x-api-key: ";
    }
    return strcmp(up->dialect->language, "gemini") == 0
               ? "x-goog-api-key: "
               : "Authorization: Bearer ";
}

/* What the pairs say together, in whatever order they stood. */
static const char *finish(cmd_parms *cmd, aigw_upstream_t *up)
{
    const aigw_dialect_t *row = aigw_dialect_profile(up->dialect,
                                                     up->profile);
    char *key = (char *)up->auth_line, *line;

    if (row == NULL) {
        return apr_psprintf(cmd->pool,
                            "AIGWUpstream %s: profile=%s is none of "
                            "dialect=%s; allowed is a profile of that "
                            "dialect, or none",
                            up->name, up->profile, up->dialect->name);
    }
    up->dialect = row;
    if (*key) {
        line = apr_pstrcat(cmd->pool, key_field(up), key, CRLF, NULL);
        up->secret = aigw_slice(line + strlen(key_field(up)), strlen(key));
        cleanse(key);
        apr_pool_cleanup_register(cmd->pool, line, cleanse,
                                  apr_pool_cleanup_null);
        up->auth_line = line;
    }
    return NULL;
}

static const char *set_option(cmd_parms *cmd, aigw_upstream_t *up,
                              const char *key, const char *value)
{
    const option_t *opt;
    const char *allowed;

    for (opt = options; opt->name; opt++) {
        if (strcmp(opt->name, key) == 0) {
            allowed = opt->set(cmd, up, opt, value);
            return allowed ? apr_psprintf(cmd->pool,
                                          "AIGWUpstream %s: "
                                          "%s=%s is not understood; allowed "
                                          "is %s",
                                          up->name, key, value, allowed)
                           : NULL;
        }
    }
    return apr_psprintf(cmd->pool,
                        "AIGWUpstream %s: %s= is not known; "
                        "allowed are key, dialect, profile, ca, verify, "
                        "connect, first, idle, total, keepalive, max, header, "
                        "proxy and usage, such as idle=120s",
                        up->name, key);
}

/* A key in base64 may end with '=': only what looks like the name of a pair
 * is one, and may be shown. */
static int is_pair_name(const char *text)
{
    apr_size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return text[n] == '\0' && n <= 16;
}

static const char *set_options(cmd_parms *cmd, aigw_upstream_t *up, int argc,
                               char *const argv[])
{
    apr_table_t *seen = apr_table_make(cmd->temp_pool, argc);
    const char *key, *value, *fault = NULL;
    int i;

    for (i = 2; i < argc && !fault; i++) {
        if (!aigw_value_split(cmd->pool, argv[i], &key, &value)
            || !is_pair_name(key)) {
            return apr_psprintf(cmd->pool,
                                "AIGWUpstream %s: argument %d has "
                                "no key=value form (it is not shown, as it "
                                "may be a key); allowed is for instance "
                                "key=file:conf/openai.key",
                                up->name, i + 1);
        }
        if (apr_table_get(seen, key)) {
            return apr_psprintf(cmd->pool,
                                "AIGWUpstream %s: %s= is said "
                                "twice; allowed is once",
                                up->name, key);
        }
        apr_table_setn(seen, key, "");
        fault = strcmp(key, "key") == 0 ? set_key(cmd, up, value)
                                        : set_option(cmd, up, key, value);
    }
    return fault;
}

static const char *set_url(cmd_parms *cmd, aigw_upstream_t *up,
                           const char *text)
{
    aigw_url_t url;
    const char *fault = aigw_url_parse(text, &url, cmd->pool);

    if (fault) {
        return apr_psprintf(cmd->pool,
                            "AIGWUpstream %s: the URL \"%s\" is "
                            "not usable: %s; allowed is "
                            "http[s]://host[:port][/path], such as "
                            "https://api.openai.com/v1",
                            up->name, aigw_url_shown(cmd->pool, text), fault);
    }
    up->tls = url.tls;
    up->host = url.host;
    up->port = url.port;
    up->host_field = url.host_field;
    up->path = url.path;
    up->authority = apr_psprintf(cmd->pool, strchr(url.host, ':')
                                                ? "[%s]:%d" : "%s:%d",
                                 url.host, (int)url.port);
    return NULL;
}

static const char *check_name(cmd_parms *cmd, const char *name)
{
    const aigw_upstream_t *other = aigw_config_upstream(name);
    const char *allowed = aigw_value_name(name);

    if (allowed || strcmp(name, "deny") == 0) {
        return apr_psprintf(cmd->pool,
                            "AIGWUpstream: \"%s\" cannot be the "
                            "name of an upstream; allowed are %s",
                            name, allowed ? allowed : "all but deny");
    }
    if (other) {
        return apr_psprintf(cmd->pool,
                            "AIGWUpstream %s: there is an upstream "
                            "of this name already, at %s; allowed is one "
                            "name once, such as %s-2",
                            name, other->where, name);
    }
    return NULL;
}

static aigw_upstream_t *make_upstream(cmd_parms *cmd, const char *name)
{
    aigw_upstream_t *up = apr_palloc(cmd->pool, sizeof(*up));

    *up = (aigw_upstream_t){
        .name = name,
        .slot = aigw_config_main()->upstreams->nelts,
        .auth_line = "",
        .key_file = "none",
        .dialect = aigw_dialect_find("openai"),
        .verify = 1,
        /* Fit for reasoning models: they are silent for minutes, and the
         * SDKs themselves wait 10 minutes for an answer. */
        .connect = apr_time_from_sec(5),
        .first = apr_time_from_sec(600),
        .idle = apr_time_from_sec(300),
        .total = apr_time_from_sec(3600),
        .keepalive = apr_time_from_sec(60),
        .pass = apr_array_make(cmd->pool, 2, sizeof(const char *)),
        .ask_usage = 1,
        .where = aigw_config_where(cmd),
    };
    return up;
}

const char *aigw_config_set_upstream(cmd_parms *cmd, void *dir, int argc,
                                     char *const argv[])
{
    aigw_upstream_t *up;
    const char *fault = aigw_config_place(cmd);

    (void)dir;
    if (fault) {
        return fault;
    }
    if (argc < 2 || argc >= AIGW_MAX_ARGS) {
        return apr_psprintf(cmd->pool,
                            "AIGWUpstream has %d arguments; "
                            "allowed is a name, a URL and key=value pairs, "
                            "such as AIGWUpstream openai "
                            "https://api.openai.com/v1 "
                            "key=file:conf/openai.key",
                            argc);
    }
    fault = check_name(cmd, argv[0]);
    if (fault) {
        return fault;
    }
    up = make_upstream(cmd, argv[0]);
    fault = set_url(cmd, up, argv[1]);
    if (!fault) {
        fault = set_options(cmd, up, argc, argv);
    }
    if (!fault) {
        fault = finish(cmd, up);
    }
    APR_ARRAY_PUSH(aigw_config_main()->upstreams, aigw_upstream_t *) = up;
    return fault;
}
