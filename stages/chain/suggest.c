#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "stages/chain/parser.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

// Levenshtein's distance, of words up to 31 letters; longer ones are far from everything, and so are
// words whose lengths alone differ by more than `most`.
static int distance(struct span a, const char *b, int most)
{
    int la = span_length(a), lb = (int)strlen(b), row[32];
    if (la > 31 || lb > 31 || la - lb > most || lb - la > most)
        return 99;
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int above = row[j];
            bool same = tolower((unsigned char)a.begin[i - 1]) == b[j - 1];
            row[j] = min(min(row[j] + 1, row[j - 1] + 1), diagonal + !same);
            diagonal = above;
        }
    }
    return row[lb];
}

void nearest_offer(struct nearest *best, struct span wrong, const char *word)
{
    int most = 1 + span_length(wrong) / 3, d = distance(wrong, word, most);
    bool begins =
        span_length(wrong) >= 3 && !strncmp(word, wrong.begin, (size_t)span_length(wrong));
    if (begins)
        d = 1;
    if (d <= most && (!best->word || d < best->distance))
        *best = (struct nearest){word, d};
}

const char *nearest_question(struct nearest best, char *buffer, size_t size)
{
    buffer[0] = 0;
    if (best.word)
        snprintf(buffer, size, "did you mean '%s'? ", best.word);
    return buffer;
}
