/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What needs the whole configuration: names that must be defined somewhere,
 * gateways that must say who may call, files that must be readable.  All
 * faults are logged, not the first alone, with the place where the directive
 * stands; warnings come with configtest and once with each start.
 */
#include "setters.h"
#include "log.h"
#include "upstream/tls.h"

#include <arpa/inet.h>
#include <unistd.h>
#include <apr_file_info.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_main.h>

#define FAULT (APLOG_STARTUP | APLOG_ERR)

static apr_array_header_t *places; /* aigw_place_t, pconf */

void aigw_config_note_location(cmd_parms *cmd, aigw_dir_t *dir)
{
    aigw_place_t *place;

    if (places->nelts > 0
        && APR_ARRAY_IDX(places, places->nelts - 1, aigw_place_t).dir == dir) {
        return;
    }
    place = apr_array_push(places);
    place->server = cmd->server;
    place->path = cmd->path;
    place->dir = dir;
}

/* httpd compares only the major number when it loads a module. The minor one
 * stands in every module of its own, so that core's tells what httpd is. */
static int httpd_is_too_old(void)
{
    if (core_module.minor_version >= aigw_module.minor_version) {
        return 0;
    }
    aigw_slog(NULL, AIGWNO(0101), FAULT, 0,
              "mod_aigw was built for an httpd with module magic number "
              "%d:%d, and this one has %d:%d: it is older; build mod_aigw "
              "with this httpd's apxs, or use the newer httpd",
              aigw_module.version, aigw_module.minor_version,
              core_module.version, core_module.minor_version);
    return 1;
}

int aigw_config_pre(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    (void)plog;
    (void)ptemp;
    places = apr_array_make(pconf, 4, sizeof(aigw_place_t));
    aigw_config_forget(pconf);
    return httpd_is_too_old() ? !OK : OK;
}

static int check_row(server_rec *s, aigw_model_row_t *row)
{
    int i, faults = 0;

    for (i = 0; i < row->candidates->nelts; i++) {
        aigw_candidate_t *cand =
            &APR_ARRAY_IDX(row->candidates, i, aigw_candidate_t);
        cand->upstream = aigw_config_upstream(cand->upstream_name);
        if (!cand->upstream) {
            aigw_slog(s, AIGWNO(0110), FAULT, 0,
                      "%s: AIGWModel %s: there is no upstream \"%s\"; allowed "
                      "is the name of an AIGWUpstream, such as: AIGWUpstream "
                      "%s https://api.openai.com/v1 key=file:conf/openai.key",
                      row->where, row->pattern, cand->upstream_name,
                      cand->upstream_name);
            faults++;
        }
    }
    return faults;
}

/* The rows that stand in this server itself: hosts without any share those
 * of the main server, which comes first. */
static const apr_array_header_t *own_rows(server_rec *s)
{
    const apr_array_header_t *rows = aigw_config_server(s)->models;

    if (s->is_virtual && rows == aigw_config_server(ap_server_conf)->models) {
        return NULL;
    }
    return rows;
}

static int check_models(server_rec *s)
{
    int i, faults = 0;

    for (; s; s = s->next) {
        const apr_array_header_t *rows = own_rows(s);
        for (i = 0; rows && i < rows->nelts; i++) {
            faults += check_row(s, APR_ARRAY_IDX(rows, i, aigw_model_row_t *));
        }
    }
    return faults;
}

/* Does a Location of path "outer" also hold what is below "inner"? */
static int covers(const char *outer, const char *inner)
{
    apr_size_t n = strlen(outer);

    return strncmp(outer, inner, n) == 0
           && (inner[n] == '\0' || inner[n] == '/' || outer[n - 1] == '/');
}

/* Is AIGWKeyFile said for the engine at this place? A Location of the main
 * server is there in all virtual hosts, so that only what the main server
 * says counts for it. */
static int keys_said(const aigw_place_t *engine, const server_rec *main_s)
{
    int i;

    for (i = 0; i < places->nelts; i++) {
        const aigw_place_t *p = &APR_ARRAY_IDX(places, i, aigw_place_t);
        if (p->dir->keys_said
            && (p->server == engine->server || p->server == main_s)
            && covers(p->path, engine->path)) {
            return 1;
        }
    }
    return aigw_config_server(engine->server)->keys_said;
}

static int check_places(const server_rec *main_s)
{
    int i, faults = 0;

    for (i = 0; i < places->nelts; i++) {
        const aigw_place_t *p = &APR_ARRAY_IDX(places, i, aigw_place_t);
        if (p->dir->engine == 1 && !keys_said(p, main_s)) {
            aigw_slog(p->server, AIGWNO(0111), FAULT, 0,
                      "%s: AIGWEngine On in <Location %s>: nothing says who "
                      "may call; write AIGWKeyFile with a file that aigw-key "
                      "made, such as AIGWKeyFile conf/aigw.keys, or "
                      "AIGWKeyFile none if everybody may",
                      p->dir->where, p->path);
            faults++;
        }
    }
    return faults;
}

/* Above its FlushMaxThreshold httpd's core filter waits for the client: on
 * the relay thread it must never come to that. */
static int check_buffer_size(const aigw_main_t *conf, server_rec *s)
{
    int faults = 0;

    for (; s; s = s->next) {
        const core_server_config *core =
            ap_get_core_module_config(s->module_config);
        apr_size_t most = (core->flush_max_threshold + 1) / 4;

        if ((apr_size_t)conf->buffer_size > most) {
            aigw_slog(s, AIGWNO(0115), FAULT, 0,
                      "AIGWBufferSize %" APR_OFF_T_FMT " is more than a "
                      "quarter of %s's FlushMaxThreshold %" APR_SIZE_T_FMT
                      "; allowed is at most %" APR_SIZE_T_FMT,
                      conf->buffer_size, s->server_hostname ?
                      s->server_hostname : "this server",
                      core->flush_max_threshold, most);
            faults++;
        }
    }
    return faults;
}

static int check_prices(aigw_main_t *conf, apr_pool_t *pconf, server_rec *s)
{
    const char *why = "";
    apr_status_t rv;

    if (!conf->price_file || conf->catalog) {
        return 0;
    }
    rv = aigw_catalog_load(&conf->catalog, conf->price_file, pconf, &why);
    if (rv == APR_SUCCESS) {
        return 0;
    }
    conf->catalog = NULL;
    aigw_slog(s, AIGWNO(0112), FAULT, 0, "AIGWPriceFile: %s", why);
    return 1;
}

/* As mod_log_config does for its files: the folder has to be there. */
static apr_filetype_e file_type(const char *path, apr_pool_t *ptemp)
{
    apr_finfo_t info;

    return apr_stat(&info, path, APR_FINFO_TYPE, ptemp) == APR_SUCCESS
               ? info.filetype
               : APR_NOFILE;
}

/* The program of "|/usr/bin/rotatelogs ...": a graceful restart that finds it
 * missing would end the running httpd. */
static const char *check_program(const char *spec, apr_pool_t *ptemp)
{
    char **argv;
    const char *line = spec + 1;

    while (*line == '|' || *line == '$' || *line == ' ') {
        line++;
    }
    if (apr_tokenize_to_argv(line, &argv, ptemp) != APR_SUCCESS || !argv[0]) {
        return "it names no program";
    }
    if (*argv[0] == '/' && access(argv[0], X_OK) != 0) {
        return apr_pstrcat(ptemp, "there is no program ", argv[0],
                           " that may be run", NULL);
    }
    return NULL;
}

static const char *check_log(const char *spec, apr_pool_t *ptemp)
{
    const char *path, *folder;

    if (*spec == '|') {
        return check_program(spec, ptemp);
    }
    path = ap_server_root_relative(ptemp, spec);
    folder = ap_make_dirstr_parent(ptemp, path);
    if (file_type(folder, ptemp) != APR_DIR) {
        return apr_pstrcat(ptemp, "there is no folder ", folder, NULL);
    }
    return file_type(path, ptemp) == APR_DIR ? "it is a folder" : NULL;
}

static int check_logs(server_rec *s, apr_pool_t *ptemp)
{
    const char *done = NULL;
    int faults = 0;

    for (; s; s = s->next) {
        const char *spec = aigw_config_server(s)->log_spec, *why;

        /* Hosts without a log of their own share the main server's. */
        if (!spec || spec == done) {
            continue;
        }
        done = spec;
        why = check_log(spec, ptemp);
        if (why) {
            aigw_slog(s, AIGWNO(0114), FAULT, 0,
                      "AIGWUsageLog %s: %s; allowed is a file in a folder "
                      "that is there, or a program, such as AIGWUsageLog "
                      "logs/usage.log",
                      spec, why);
            faults++;
        }
    }
    return faults;
}

static int check_tls(const aigw_main_t *conf, apr_pool_t *pconf, server_rec *s)
{
    int i, faults = 0;

    for (i = 0; i < conf->upstreams->nelts; i++) {
        aigw_upstream_t *up =
            APR_ARRAY_IDX(conf->upstreams, i, aigw_upstream_t *);
        const char *why = "";

        if (!up->tls || up->tls_ctx) {
            continue;
        }
        up->tls_ctx =
            aigw_tls_ctx_create(pconf, up->host, up->ca, up->verify, &why);
        if (!up->tls_ctx) {
            aigw_slog(s, AIGWNO(0113), FAULT, 0, "%s: AIGWUpstream %s: %s",
                      up->where, up->name, why);
            faults++;
        }
    }
    return faults;
}

static void settle_defaults(server_rec *s)
{
    for (; s; s = s->next) {
        aigw_server_t *sc = aigw_config_server(s);
        if (sc->max_body < 0) {
            sc->max_body = AIGW_MAX_BODY_DEFAULT;
        }
    }
}

/* Never leaves the host, so that http:// is no risk to the key. */
static int is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0
           || (strncmp(host, "127.", 4) == 0
               && inet_addr(host) != INADDR_NONE);
}

static void warn_upstream(const aigw_upstream_t *up, server_rec *s)
{
    if (up->tls && !up->verify) {
        aigw_slog(s, AIGWNO(0130), APLOG_WARNING, 0,
                  "%s: AIGWUpstream %s: verify=off: whoever is on the way to "
                  "%s can read the account's key and all requests; write "
                  "ca=FILE for a certificate of your own",
                  up->where, up->name, up->host);
    }
    if (!up->tls && *up->auth_line && !is_loopback(up->host)) {
        aigw_slog(s, AIGWNO(0131), APLOG_WARNING, 0,
                  "%s: AIGWUpstream %s: the account's key goes to %s by plain "
                  "http; write https:// in its URL",
                  up->where, up->name, up->host);
    }
    if (up->key_open) {
        aigw_slog(s, AIGWNO(0132), APLOG_WARNING, 0,
                  "%s: AIGWUpstream %s: other users can read the key file "
                  "%s; allowed is mode 600, as by: chmod 600 %s",
                  up->where, up->name, up->key_file, up->key_file);
    }
}

/* A gateway that answers everything with 404 is hardly what was meant. A
 * Location of the main server may be served by a virtual host's rows. */
static void warn_places(server_rec *main_s)
{
    int i;

    for (i = 0; i < places->nelts; i++) {
        const aigw_place_t *p = &APR_ARRAY_IDX(places, i, aigw_place_t);
        const server_rec *s;
        int rows = aigw_config_server(p->server)->models != NULL;

        for (s = main_s; s && p->server == main_s && !rows; s = s->next) {
            rows = aigw_config_server((server_rec *)s)->models != NULL;
        }
        if (p->dir->engine == 1 && !rows) {
            aigw_slog(p->server, AIGWNO(0134), APLOG_WARNING, 0,
                      "%s: AIGWEngine On in <Location %s>: no AIGWModel row "
                      "serves it, so that every model is answered with 404; "
                      "write for instance AIGWModel * and an upstream's name",
                      p->dir->where, p->path);
        }
    }
}

static void warn_all(const aigw_main_t *conf, server_rec *s)
{
    int i;

    warn_places(s);
    for (i = 0; i < conf->upstreams->nelts; i++) {
        warn_upstream(APR_ARRAY_IDX(conf->upstreams, i, aigw_upstream_t *), s);
    }
    aigw_capacity_warn(conf, s);
}

int aigw_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                      server_rec *s)
{
    aigw_main_t *conf = aigw_config_main();
    int faults = check_models(s) + check_places(s);

    (void)plog;
    faults += check_logs(s, ptemp);
    faults += check_buffer_size(conf, s);
    faults += check_prices(conf, pconf, s);
    faults += check_tls(conf, pconf, s);
    if (faults > 0) {
        return !OK;
    }
    settle_defaults(s);
    aigw_capacity_work_out(conf);
    if (ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST) {
        warn_all(conf, s);
    }
    return OK;
}

int aigw_config_post(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                     server_rec *s)
{
    aigw_main_t *conf = aigw_config_main();

    (void)pconf;
    (void)plog;
    (void)ptemp;
    /* httpd goes through the configuration twice when it starts. */
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    warn_all(conf, s);
    aigw_slog(s, AIGWNO(0140), APLOG_INFO, 0,
              "up to %d exchanges a child (%s)",
              conf->max_streams > 0 ? conf->max_streams
                                    : conf->max_streams_default,
              conf->max_streams > 0 ? "AIGWMaxStreams"
                                    : "AIGWMaxStreams is not said");
    return OK;
}
