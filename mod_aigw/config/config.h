/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the administrator has said, after httpd has read it: plain structs
 * that every station reads and none writes.  Faults are found here, by
 * `apachectl configtest`, never when a request comes.
 */
#ifndef AIGW_CONFIG_H
#define AIGW_CONFIG_H

#include <httpd.h>
#include <http_config.h>
#include <apr_tables.h>

#include "../core/slice.h"
#include "../core/dialect.h"
#include "../core/price.h"
#include "../core/health.h"

struct aigw_keys_t;
struct aigw_usage_log_t;
struct aigw_upstream_rt_t;
struct aigw_tls_ctx_t;

/** An account at a provider. Lives in pconf, until restart. */
typedef struct {
    const char *name;
    int slot;                 /* 0.. : index in aigw_main_t.upstreams */
    int tls;                  /* https */
    const char *host;         /* for the resolver and for SNI; no brackets */
    apr_port_t port;
    const char *host_field;   /* the Host field's value: port only if it is
                                 not the scheme's own */
    const char *path;         /* of the URL, no trailing slash: "/v1", "" */
    const char *proxy_host;   /* proxy=: where to connect to instead; NULL:
                                 there is none */
    apr_port_t proxy_port;
    const char *authority;    /* host:port, always with the port: what a proxy
                                 is asked for */
    const char *auth_line;    /* secret: the whole "Authorization: Bearer X"
                                 line with its CRLF, "" for key=none. Never
                                 printed, never in a table. */
    aigw_slice_t secret;      /* the key alone, inside auth_line; n 0: none */
    const char *key_file;     /* where it came from (this may be printed) */
    int key_open;             /* 1: other users can read that file */
    const aigw_dialect_t *dialect;
    const char *profile;      /* NULL: the dialect's own */
    const char *ca;           /* PEM file; NULL: the system's */
    int verify;               /* 1 unless verify=off */
    apr_interval_time_t connect, first, idle, total, keepalive;
    int max;                  /* concurrent exchanges a child, 0: no bound */
    apr_array_header_t *pass; /* const char *: more fields to pass, lower
                                 case; both ways */
    int ask_usage;            /* usage=ask */
    const char *where;        /* "file:line" of the directive */
    struct aigw_tls_ctx_t *tls_ctx;   /* made in check_config; NULL if plain */
    aigw_health_t *health;    /* pchild; likewise */
    struct aigw_upstream_rt_t *rt;    /* pchild: made in child_init */
} aigw_upstream_t;

typedef struct {
    const char *upstream_name;
    const char *remote;       /* model name to send; NULL: as asked */
    aigw_upstream_t *upstream; /* looked up by the cross-check */
} aigw_candidate_t;

/** AIGWModel. */
typedef struct {
    const char *pattern;      /* '*' only at the end */
    int deny;
    apr_array_header_t *candidates; /* aigw_candidate_t */
    const char *where;
} aigw_model_row_t;

/** What exists once, whatever the vhosts say. pconf. */
typedef struct {
    apr_array_header_t *upstreams; /* aigw_upstream_t * */
    const char *price_file;        /* AIGWPriceFile, NULL: none */
    aigw_catalog_t *catalog;       /* read in check_config */
    apr_off_t buffer_size;         /* AIGWBufferSize: one upstream read */
    apr_off_t buffer_max;          /* AIGWBufferMax */
    apr_off_t memory_limit;        /* AIGWMemoryLimit; 0: none */
    int max_streams;               /* AIGWMaxStreams; 0: the default */
    int max_streams_default;       /* worked out in check_config from the
                                      MPM's settings and RLIMIT_NOFILE; for
                                      one child */
} aigw_main_t;

/** Per server (vhost), merged. */
typedef struct {
    apr_array_header_t *models;    /* aigw_model_row_t *; NULL: not said */
    struct aigw_keys_t *keys;      /* AIGWKeyFile; NULL: none; not said: an
                                      empty set, so that nobody may call */
    int keys_said;                 /* 1: AIGWKeyFile stood here, also none */
    const char *log_spec;          /* AIGWUsageLog */
    struct aigw_usage_log_t *log;  /* opened in open_logs; NULL: none */
    apr_off_t max_body;            /* AIGWMaxBody in bytes; -1 not said, never
                                      so after check_config */
    apr_interval_time_t drain_time; /* AIGWDrain; -1: not said, 0: close
                                      the upstream when a client leaves */
    apr_off_t drain_bytes;         /* and how much is read at most */
} aigw_server_t;

/** Per Location, merged. */
typedef struct {
    int engine;                    /* AIGWEngine: -1 not said, 0, 1 */
    const char *prefix;            /* the literal Location's path, no
                                      trailing slash; NULL outside one */
    struct aigw_keys_t *keys;
    int keys_said;
    const char *where;
} aigw_dir_t;

#define AIGW_MAX_BODY_DEFAULT (64 * 1024 * 1024)

/* Everything else in the shared object is hidden. */
extern module AP_MODULE_DECLARE_DATA
    __attribute__((visibility("default"))) aigw_module;

/** The command table, made of directives.def. */
extern const command_rec aigw_config_directives[];

void *aigw_config_create_server(apr_pool_t *p, server_rec *s);
void *aigw_config_merge_server(apr_pool_t *p, void *base, void *over);
void *aigw_config_create_dir(apr_pool_t *p, char *path);
void *aigw_config_merge_dir(apr_pool_t *p, void *base, void *over);

/** pre_config: forget what an earlier configuration said. */
int aigw_config_pre(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp);
/** check_config, APR_HOOK_LAST (the MPM's own check comes before): all that
 * needs the whole configuration: unknown upstreams, engine Locations without
 * AIGWKeyFile, the price file, the TLS contexts. Logs each fault with file
 * and line and returns !OK, so that configtest fails. Works out
 * max_streams_default and settles max_body. */
int aigw_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                      server_rec *s);
/** post_config: the warnings (MPM settings, verify=off, open key files), once
 * a start. configtest has them from aigw_config_check(). */
int aigw_config_post(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                     server_rec *s);

/** The one aigw_main_t of the running configuration. */
aigw_main_t *aigw_config_main(void);
aigw_server_t *aigw_config_server(server_rec *s);
aigw_dir_t *aigw_config_dir(request_rec *r);
/** Who may call here: the Location's key file, else the server's. NULL only
 * where AIGWKeyFile none was said. */
const struct aigw_keys_t *aigw_config_keys(request_rec *r);

#endif
