/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-key: makes, lists and ends the keys of an AIGWKeyFile.  A key is
 * shown once, on standard output, and stands nowhere afterwards: the file
 * holds its SHA-256.
 *
 * The file is never seen half written: it is locked, written anew beside
 * itself and renamed.  Lines that are not touched stay as they are, comments
 * too.  A file with a fault is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <apr_general.h>
#include <apr_strings.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "keys.h"

#define KEY_PREFIX "aigw-"
#define KEY_BYTES 32
#define EXIT_USAGE 2
#define SIZE_MAX_FILE (64 * 1024 * 1024)

typedef struct {
    const char *path; /* of the key file, links resolved */
    int fd;           /* holds the lock */
    struct stat st;
    aigw_slice_t text;
    apr_pool_t *pool;
} keyfile_t;

typedef struct {
    const char *file, *tenant, *id, *expires;
} args_t;

static const char usage_text[] =
    "Usage:\n"
    "  aigw-key add FILE --tenant T [--id ID] [--expires DATE]\n"
    "  aigw-key list FILE\n"
    "  aigw-key expire FILE --id ID --expires DATE\n"
    "  aigw-key remove FILE --id ID\n"
    "\n"
    "  add     make a key, put its hash into FILE (made if absent), and\n"
    "          print the key: this once, it stands nowhere\n"
    "  list    show key ids, tenants and expiry dates\n"
    "  expire  let a key end at DATE; \"never\" takes an end away\n"
    "  remove  take a key out of FILE\n"
    "\n"
    "  --tenant T      who pays: 1 to 64 letters, digits and ._-@\n"
    "  --id ID         the key's name in logs (default: made up)\n"
    "  --expires DATE  from then on the key is refused: 2030-12-31 (its\n"
    "                  first moment, UTC) or 2030-12-31T18:00:00+01:00\n"
    "  --help          this text\n"
    "\n"
    "httpd reads FILE (AIGWKeyFile) when it starts or restarts: after a\n"
    "change, run apachectl graceful.\n"
    "Exit codes: 0 done, 1 not done (the reason is on standard error),\n"
    "2 wrong usage.\n";

static int complain(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/* @return 0, so that callers can say: return complain(...) */
static int complain(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("aigw-key: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return 0;
}

/* Open and lock. A writer may have renamed a new file into place while we
 * waited for the lock of the old one: then once more. */
static int lock_file(keyfile_t *kf, int flags)
{
    struct stat now;

    for (;;) {
        kf->fd = open(kf->path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
        if (kf->fd < 0) {
            return complain("%s cannot be opened: %s", kf->path,
                            strerror(errno));
        }
        if (flock(kf->fd, LOCK_EX) != 0 || fstat(kf->fd, &kf->st) != 0) {
            return complain("%s cannot be locked: %s", kf->path,
                            strerror(errno));
        }
        if (stat(kf->path, &now) == 0 && now.st_ino == kf->st.st_ino
            && now.st_dev == kf->st.st_dev) {
            return 1;
        }
        close(kf->fd);
    }
}

static int read_text(keyfile_t *kf)
{
    char *buf;
    apr_size_t size = (apr_size_t)kf->st.st_size, n = 0;

    if (!S_ISREG(kf->st.st_mode) || kf->st.st_size > SIZE_MAX_FILE) {
        return complain("%s is not a key file", kf->path);
    }
    buf = apr_palloc(kf->pool, size + 1);
    while (n < size) {
        ssize_t got = read(kf->fd, buf + n, size - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return complain("%s cannot be read: %s", kf->path,
                            got < 0 ? strerror(errno) : "it has shrunk");
        }
        n += (apr_size_t)got;
    }
    kf->text = aigw_slice(buf, n);
    return 1;
}

/* Locked, read and without a fault. */
static int open_file(keyfile_t *kf, const char *name, int flags,
                     apr_pool_t *pool)
{
    aigw_keys_t *keys;
    const char *fault;
    char *real = realpath(name, NULL);

    kf->pool = pool;
    kf->path = apr_pstrdup(pool, real ? real : name);
    free(real);
    if (!lock_file(kf, flags) || !read_text(kf)) {
        return 0;
    }
    fault = aigw_keys_parse(&keys, kf->text, kf->path, pool);
    return fault ? complain("%s", fault) : 1;
}

static int write_all(int fd, const char *p, apr_size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR) {
            return 0;
        }
        if (done > 0) {
            p += done;
            n -= (apr_size_t)done;
        }
    }
    return 1;
}

static void sync_folder(const char *path, apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        !slash ? "."
        : slash == path
            ? "/"
            : apr_pstrmemdup(pool, path, (apr_size_t)(slash - path));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* The new text takes the file's place: whole, or not at all. */
static int replace_file(keyfile_t *kf, const char *text, apr_size_t n)
{
    char *temp = apr_pstrcat(kf->pool, kf->path, ".XXXXXX", NULL);
    int fd = mkostemp(temp, O_CLOEXEC), ok;

    if (fd < 0) {
        return complain("no file can be written beside %s: %s", kf->path,
                        strerror(errno));
    }
    /* The owner stays, so that a key file made by root for somebody else
     * does not slip from his hands. Only root can do that, and only root
     * needs to. */
    ok = (kf->st.st_uid == geteuid() && kf->st.st_gid == getegid())
         || fchown(fd, kf->st.st_uid, kf->st.st_gid) == 0;
    ok = ok && fchmod(fd, 0600) == 0 && write_all(fd, text, n)
         && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && rename(temp, kf->path) == 0;
    if (!ok) {
        complain("%s cannot be replaced: %s", kf->path, strerror(errno));
        unlink(temp);
        return 0;
    }
    sync_folder(kf->path, kf->pool);
    return 1;
}

/* A line that holds a key. */
typedef struct {
    aigw_slice_t line;   /* without its newline */
    apr_size_t from, to; /* in the text, newline included */
    aigw_key_t key;
} row_t;

static int next_row(const keyfile_t *kf, row_t *row)
{
    const char *text = kf->text.p;

    while (row->to < kf->text.n) {
        const char *nl = memchr(text + row->to, '\n', kf->text.n - row->to);
        row->from = row->to;
        row->to = nl ? (apr_size_t)(nl - text) + 1 : kf->text.n;
        row->line =
            aigw_slice(text + row->from, row->to - row->from - (nl ? 1 : 0));
        if (!aigw_key_line_empty(row->line)
            && !aigw_key_parse(row->line, &row->key, kf->pool)) {
            return 1;
        }
    }
    return 0;
}

static int find_row(const keyfile_t *kf, const char *id, row_t *row)
{
    memset(row, 0, sizeof(*row));
    while (next_row(kf, row)) {
        if (strcmp(row->key.id, id) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The file with @a with in the place of a row ("" takes it out). */
static int replace_row(keyfile_t *kf, const row_t *row, const char *with)
{
    apr_size_t n = strlen(with), rest = kf->text.n - row->to;
    char *text = apr_palloc(kf->pool, kf->text.n + n);

    memcpy(text, kf->text.p, row->from);
    memcpy(text + row->from, with, n);
    memcpy(text + row->from + n, kf->text.p + row->to, rest);
    return replace_file(kf, text, row->from + n + rest);
}

static const char *hex(apr_pool_t *pool, const unsigned char *p, int n)
{
    static const char digits[] = "0123456789abcdef";
    char *text = apr_palloc(pool, (apr_size_t)n * 2 + 1), *at = text;

    for (; n > 0; n--, p++) {
        *at++ = digits[*p >> 4];
        *at++ = digits[*p & 15];
    }
    *at = '\0';
    return text;
}

/* 32 random bytes in the letters that need no quoting anywhere. */
static int make_key(char *key)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                  "qrstuvwxyz0123456789-_";
    unsigned char raw[KEY_BYTES + 1] = {0};
    char *at = key + strlen(KEY_PREFIX);
    unsigned bits = 0, n = 0;
    int i;

    if (RAND_bytes(raw, KEY_BYTES) != 1) {
        return complain("OpenSSL has no random numbers");
    }
    memcpy(key, KEY_PREFIX, strlen(KEY_PREFIX));
    for (i = 0; i < KEY_BYTES + 1; i++) {
        bits = bits << 8 | raw[i];
        for (n += 8; n >= 6 && at < key + strlen(KEY_PREFIX) + 43; n -= 6) {
            *at++ = letters[bits >> (n - 6) & 63];
        }
    }
    *at = '\0';
    OPENSSL_cleanse(raw, sizeof(raw));
    return 1;
}

static const char *make_id(const keyfile_t *kf)
{
    unsigned char raw[4];
    const char *id;
    row_t row;

    do {
        if (RAND_bytes(raw, sizeof(raw)) != 1) {
            return NULL;
        }
        id = apr_pstrcat(kf->pool, "k", hex(kf->pool, raw, sizeof(raw)), NULL);
    } while (find_row(kf, id, &row));
    return id;
}

static const char *row_text(apr_pool_t *pool, const char *id,
                            const char *tenant, const char *hash,
                            const char *expires)
{
    return apr_pstrcat(pool, id, " ", tenant, " sha256:", hash,
                       expires ? " expires=" : "", expires ? expires : "",
                       "\n", NULL);
}

static int append_key(keyfile_t *kf, const args_t *args, const char *key)
{
    unsigned char hash[AIGW_KEY_HASH];
    row_t end = {{NULL, 0}, kf->text.n, kf->text.n, {0}};
    int torn = kf->text.n > 0 && kf->text.p[kf->text.n - 1] != '\n';

    if (!aigw_key_hash(aigw_slice(key, strlen(key)), hash)) {
        return complain("OpenSSL has no SHA-256");
    }
    return replace_row(kf, &end,
                       apr_pstrcat(kf->pool, torn ? "\n" : "",
                                   row_text(kf->pool, args->id, args->tenant,
                                            hex(kf->pool, hash, AIGW_KEY_HASH),
                                            args->expires),
                                   NULL));
}

/* A date of the past is an odd wish, and may be meant. */
static void warn_past(const char *expires)
{
    apr_time_t when;

    if (expires && aigw_key_date(expires, &when) && when <= apr_time_now()) {
        complain("warning: --expires %s is past: httpd refuses this key",
                 expires);
    }
}

static int run_add(const args_t *given, apr_pool_t *pool)
{
    char key[64];
    args_t args = *given;
    keyfile_t kf;
    row_t row;
    int ok;

    if (!open_file(&kf, args.file, O_RDWR | O_CREAT, pool)) {
        return 0;
    }
    if (args.id && find_row(&kf, args.id, &row)) {
        return complain("%s: there is a key with the id %s already (tenant "
                        "%s)",
                        kf.path, args.id, row.key.tenant);
    }
    args.id = args.id ? args.id : make_id(&kf);
    ok = args.id && make_key(key) && append_key(&kf, &args, key);
    if (ok && (puts(key) < 0 || fflush(stdout) != 0)) {
        ok = complain("the key could not be printed; nobody knows it, so "
                      "take it out: aigw-key remove %s --id %s",
                      args.file, args.id);
    }
    OPENSSL_cleanse(key, sizeof(key));
    if (ok) {
        fprintf(stderr,
                "aigw-key: key %s of tenant %s is in %s; it is not "
                "shown again. httpd knows it after: apachectl graceful\n",
                args.id, args.tenant, kf.path);
        warn_past(args.expires);
    }
    return ok;
}

static int run_list(const args_t *args, apr_pool_t *pool)
{
    keyfile_t kf;
    row_t row = {{NULL, 0}, 0, 0, {0}};

    if (!open_file(&kf, args->file, O_RDONLY, pool)) {
        return 0;
    }
    printf("%-20s %-20s %s\n", "ID", "TENANT", "EXPIRES");
    while (next_row(&kf, &row)) {
        printf("%-20s %-20s %s%s\n", row.key.id, row.key.tenant,
               row.key.expires ? row.key.expires_text : "never",
               row.key.expires && row.key.expires <= apr_time_now()
                   ? " (expired)"
                   : "");
    }
    return fflush(stdout) == 0
           || complain("the list could not be written: %s", strerror(errno));
}

/* Open the file and find the row of --id. */
static int open_row(keyfile_t *kf, const args_t *args, row_t *row,
                    apr_pool_t *pool)
{
    if (!open_file(kf, args->file, O_RDWR, pool)) {
        return 0;
    }
    return find_row(kf, args->id, row)
           || complain("%s: there is no key with the id %s; aigw-key list %s "
                       "shows those there are",
                       kf->path, args->id, args->file);
}

static int run_remove(const args_t *args, apr_pool_t *pool)
{
    keyfile_t kf;
    row_t row;

    if (!open_row(&kf, args, &row, pool) || !replace_row(&kf, &row, "")) {
        return 0;
    }
    fprintf(stderr,
            "aigw-key: key %s of tenant %s is taken out of %s. It works "
            "until: apachectl graceful\n",
            row.key.id, row.key.tenant, kf.path);
    return 1;
}

static int run_expire(const args_t *args, apr_pool_t *pool)
{
    int never = strcmp(args->expires, "never") == 0;
    keyfile_t kf;
    row_t row;

    if (!open_row(&kf, args, &row, pool)
        || !replace_row(&kf, &row,
                        row_text(pool, row.key.id, row.key.tenant,
                                 hex(pool, row.key.hash, AIGW_KEY_HASH),
                                 never ? NULL : args->expires))) {
        return 0;
    }
    fprintf(stderr,
            "aigw-key: key %s of tenant %s in %s %s%s. httpd knows it after: "
            "apachectl graceful\n",
            row.key.id, row.key.tenant, kf.path,
            never ? "has no end" : "ends at ", never ? "" : args->expires);
    warn_past(args->expires);
    return 1;
}

/* clang-format off */
static const struct {
    const char *name;
    int (*run)(const args_t *args, apr_pool_t *pool);
    const char *options;   /* t i e: may be given; T I E: must be */
} commands[] = {
    { "add", run_add, "Tie" },
    { "list", run_list, "" },
    { "expire", run_expire, "IE" },
    { "remove", run_remove, "I" },
    { NULL, NULL, NULL }
};
/* clang-format on */

/* One option against the command's list; 0 after a complaint. */
static int check_option(const char *allowed, char letter, const char *name,
                        const char *value)
{
    int must = strchr(allowed, letter - 'a' + 'A') != NULL;

    if (!value) {
        return !must || complain("--%s is missing; see aigw-key --help", name);
    }
    return must || strchr(allowed, letter) != NULL
           || complain("--%s makes no sense here; see aigw-key --help", name);
}

static int check_args(const char *allowed, const args_t *args)
{
    apr_time_t when;

    if (!check_option(allowed, 't', "tenant", args->tenant)
        || !check_option(allowed, 'i', "id", args->id)
        || !check_option(allowed, 'e', "expires", args->expires)) {
        return 0;
    }
    if (args->tenant && !aigw_key_word(args->tenant)) {
        return complain("--tenant \"%s\": allowed are 1 to 64 letters, digits "
                        "and ._-@, such as acme",
                        args->tenant);
    }
    if (args->id && !aigw_key_word(args->id)) {
        return complain("--id \"%s\": allowed are 1 to 64 letters, digits and "
                        "._-@, such as k1",
                        args->id);
    }
    if (args->expires && !aigw_key_date(args->expires, &when)
        && !(strchr(allowed, 'E') && strcmp(args->expires, "never") == 0)) {
        return complain("--expires \"%s\": allowed is a date, or a time with "
                        "its zone, such as 2030-12-31 or "
                        "2030-12-31T18:00:00Z",
                        args->expires);
    }
    return 1;
}

/* @return 1, or 0 after a complaint */
static int read_args(int argc, char **argv, args_t *args)
{
    static char program[] = "aigw-key";
    static const struct option longs[] = {{"tenant", required_argument, NULL,
                                           't'},
                                          {"id", required_argument, NULL, 'i'},
                                          {"expires", required_argument, NULL,
                                           'e'},
                                          {NULL, 0, NULL, 0}};
    int c;

    memset(args, 0, sizeof(*args));
    argv[0] = program; /* what getopt's complaints begin with */
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 't':
            args->tenant = optarg;
            break;
        case 'i':
            args->id = optarg;
            break;
        case 'e':
            args->expires = optarg;
            break;
        default:
            return complain("see aigw-key --help");
        }
    }
    if (optind != argc - 1) {
        return complain("%s; see aigw-key --help", optind == argc
                                                       ? "FILE is missing"
                                                       : "more than one FILE");
    }
    args->file = argv[optind];
    return 1;
}

static int run(int argc, char **argv, apr_pool_t *pool)
{
    args_t args;
    int i;

    if (argc > 1
        && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    }
    for (i = 0; argc > 1 && commands[i].name; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            if (!read_args(argc - 1, argv + 1, &args)
                || !check_args(commands[i].options, &args)) {
                return EXIT_USAGE;
            }
            return commands[i].run(&args, pool) ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    if (argc > 1) {
        complain("\"%s\" is not a command; allowed are add, list, expire and "
                 "remove; see aigw-key --help",
                 argv[1]);
    }
    else {
        fputs(usage_text, stderr);
    }
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    apr_pool_t *pool;
    int code;

    apr_initialize();
    apr_pool_create(&pool, NULL);
    code = run(argc, argv, pool);
    apr_terminate();
    return code;
}
