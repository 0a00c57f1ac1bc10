/* SPDX-License-Identifier: MIT
 *
 * Lines without libc, against snprintf.
 */
#include "os/line.h"

#include <inttypes.h>

#include "unit.h"

static void expect_text(struct line *line, const char *text)
{
    EXPECT_MSG(line->used == strlen(text) && memcmp(line->text, text, line->used) == 0, "'%.*s', not '%s'",
               (int)line->used, line->text, text);
    line->used = 0;
}

static void numbers(struct rng *rng)
{
    struct line line = LINE_EMPTY;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        uint64_t value = i < 64 ? 1ull << i : i < 128 ? ~0ull >> (i - 64) : rng_next(rng) >> rng_below(rng, 64);
        snprintf(text, sizeof text, "%" PRIu64, value);
        line_dec(&line, value);
        expect_text(&line, text);
        snprintf(text, sizeof text, "0x%" PRIx64, value);
        line_hex(&line, value);
        expect_text(&line, text);
    }
    line_dec(&line, 0);
    line_hex(&line, 0);
    expect_text(&line, "00x0");
}

static void formats(void)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "%s(): %p, %lu of %lu%s", "free", (void *)0xabc, 7ul, UINT64_MAX, "");
    expect_text(&line, "free(): 0xabc, 7 of 18446744073709551615");
    line_add(&line, "%p", NULL);
    expect_text(&line, "0x0");
}

static void sizes(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } row[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1024 * 1024 - 1, "1023.9 KiB"},
        {1024 * 1024, "1.0 MiB"},
        {12900000, "12.3 MiB"},
        {1ull << 30, "1.0 GiB"},
        {5ull << 40, "5.0 TiB"},
        {1ull << 50, "1024.0 TiB"},
    };
    struct line line = LINE_EMPTY;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        line_bytes(&line, row[i].bytes);
        expect_text(&line, row[i].text);
    }
}

static void columns_and_ends(void)
{
    struct line line = LINE_EMPTY;
    line_text(&line, "ab");
    line_pad(&line, 6);
    line_text(&line, "c");
    line_pad(&line, 3); /* already beyond */
    expect_text(&line, "ab    c");

    /* What does not fit is cut, and nothing is written behind the line. */
    struct {
        struct line line;
        char behind[64];
    } guarded = {.line = LINE_EMPTY};
    memset(guarded.behind, '#', sizeof guarded.behind);
    for (int i = 0; i < 300; i++) {
        line_text(&guarded.line, "0123456789");
        line_dec(&guarded.line, 1234567);
        line_hex(&guarded.line, 0xabcdef);
        line_add(&guarded.line, "abc%s", "def");
        line_pad(&guarded.line, 5000);
        line_bytes(&guarded.line, 12345678);
    }
    EXPECT_EQ(guarded.line.used, LINE_MOST);
    EXPECT_EQ(strlen(line_end(&guarded.line)), LINE_MOST);
    for (size_t i = 0; i < sizeof guarded.behind; i++)
        EXPECT_EQ(guarded.behind[i], '#');
}

static void flushing(void)
{
    int fd[2];
    EXPECT_EQ(pipe(fd), 0);
    struct line line = LINE_EMPTY;
    line_text(&line, "one\n");
    line_flush(&line, fd[1]);
    EXPECT_EQ(line.used, 0);
    line_flush(&line, fd[1]); /* nothing */
    line_text(&line, "two\n");
    line_flush(&line, fd[1]);
    close(fd[1]);
    char text[64];
    EXPECT_EQ(read(fd[0], text, sizeof text), 8);
    EXPECT(memcmp(text, "one\ntwo\n", 8) == 0);
    close(fd[0]);
    line_text(&line, "nobody hears this");
    errno = 4711;
    line_flush(&line, -1); /* no such descriptor: no harm, and errno is the program's */
    EXPECT_EQ(errno, 4711);
    EXPECT_EQ(line.used, 0);
}

static void texts(void)
{
    EXPECT(text_equal("", "") && text_equal("abc", "abc"));
    EXPECT(!text_equal("abc", "ab") && !text_equal("ab", "abc") && !text_equal("abc", "abd") && !text_equal("", "a"));
    EXPECT(text_length("") == 0 && text_length("four") == 4);
}

int main(void)
{
    struct rng rng = unit_rng();
    numbers(&rng);
    formats();
    sizes();
    columns_and_ends();
    flushing();
    texts();
    return 0;
}
