/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text and its index.  The index is built once, on first use; after that
 * a word costs one copy.
 */
#include "text.h"

#include <string.h>

#define WORDS_MAX 256

static const char text[] =
    "A gateway for language models stands between your applications and "
    "the providers. It checks who is calling, finds the upstream that "
    "serves the model, and hands each piece of the answer on in the moment "
    "in which it comes, so that nobody waits for the last word to read the "
    "first. While the model thinks, no worker of the web server is held: "
    "the sites on the same machine stay as quick as they were. At the end "
    "it reads the token counts that the provider states, prices them, and "
    "writes one line to its log. By the way: these words come from a "
    "simulator. No model was asked, and they cost nothing.";

static sim_slice_t words[WORDS_MAX];
static uint64_t n_words;

static void index_words(void)
{
    const char *s = text;

    while (*s && n_words < WORDS_MAX) {
        words[n_words].p = s;
        words[n_words].n = strcspn(s, " ");
        s += words[n_words].n;
        s += strspn(s, " ");
        n_words++;
    }
}

uint64_t sim_text_words(void)
{
    if (!n_words) {
        index_words();
    }
    return n_words;
}

void sim_text_word(sim_buf_t *b, uint64_t i)
{
    uint64_t k = i % sim_text_words();

    if (k) {
        sim_buf_add(b, " ", 1);
    }
    else if (i) {
        sim_buf_add(b, "\\n\\n", 4);
    }
    sim_buf_add(b, words[k].p, words[k].n);
}
