/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main() of a fuzz target in make check: gives it every file of its
 * corpus, and every beginning of the small ones, and reports one TAP line.
 * It judges nothing: a target that sees something wrong aborts.  Without
 * arguments the corpus is the folder named as the program (fuzz_sse: sse).
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WHOLE_MAX (16 * 1024 * 1024)
#define CUT_MAX 512 /* beginnings are tried up to this size */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

/* The copy is exact, so that a sanitizer sees the first byte behind it. */
static void give(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (copy == NULL) {
        perror("malloc");
        exit(1);
    }
    if (n) {
        memcpy(copy, data, n);
    }
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    inputs++;
}

static void replay_file(const char *path)
{
    uint8_t *data = malloc(WHOLE_MAX);
    FILE *in = fopen(path, "rb");
    size_t n, cut;

    if (data == NULL || in == NULL) {
        perror(path);
        exit(1);
    }
    n = fread(data, 1, WHOLE_MAX, in);
    fclose(in);
    give(data, n);
    for (cut = 0; n <= CUT_MAX && cut < n; cut++) {
        give(data, cut);
    }
    free(data);
}

static void replay_folder(const char *path)
{
    char name[4096];
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (dir == NULL) {
        perror(path);
        exit(1);
    }
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            replay_file(name);
        }
    }
    closedir(dir);
}

static void replay(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        replay_file(path);
    }
    else {
        replay_folder(path);
    }
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    char own[4096];
    int i;

    if (argc == 1 && strncmp(name, "fuzz_", 5) == 0) {
        snprintf(own, sizeof(own), "%s/%s", FUZZ_CORPUS, name + 5);
        replay(own);
    }
    for (i = 1; i < argc; i++) {
        replay(argv[i]);
    }
    printf("1..1\n%s 1 - %s holds for its corpus\n# %lu inputs\n",
           inputs ? "ok" : "not ok", name, inputs);
    return inputs ? 0 : 1;
}
