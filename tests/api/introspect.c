/* SPDX-License-Identifier: MIT
 *
 * glibc's windows on the heap must show the heap that is really in use.  A preloaded allocator that forgets one of them
 * leaves the program reading figures of an empty glibc heap, so each window is asked before and after 64 MiB of
 * allocations, and again after they are freed, and the figures must move with them.
 */
#include "support/family.h"
#include "support/proc.h"

#define COUNT 16384
#define SIZE  4000 /* 64 MiB in all */

static void *blocks[COUNT];

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) {
        CHECK((blocks[i] = malloc(SIZE)) != NULL);
        memset(blocks[i], 1, SIZE);
    }
}

static void drain(void)
{
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
}

static void figures_of_mallinfo2(void)
{
    const size_t total = (size_t)COUNT * SIZE;
    struct mallinfo2 before = mallinfo2();
    fill();
    struct mallinfo2 full = mallinfo2();
    CHECK_MSG(full.uordblks + full.hblkhd >= before.uordblks + before.hblkhd + total, "in use: %zu -> %zu",
              before.uordblks + before.hblkhd, full.uordblks + full.hblkhd);
    CHECK_MSG(full.uordblks + full.hblkhd <= before.uordblks + before.hblkhd + total * 5 / 4, "in use: %zu -> %zu",
              before.uordblks + before.hblkhd, full.uordblks + full.hblkhd);
    CHECK_MSG(full.arena + full.hblkhd >= full.uordblks, "arena %zu holds less than is in use %zu", full.arena,
              full.uordblks);
    /* The narrow form counts in ints: equal while the figures fit. */
    #pragma GCC diagnostic push
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
    #pragma GCC diagnostic pop
    CHECK_MSG(narrow.uordblks >= (int)(total / 2), "mallinfo: in use %d", narrow.uordblks);
    drain();
    struct mallinfo2 after = mallinfo2();
    CHECK_MSG(after.uordblks + after.hblkhd <= before.uordblks + before.hblkhd + total / 16, "still in use: %zu -> %zu",
              before.uordblks + before.hblkhd, after.uordblks + after.hblkhd);

    /* One mapped block. */
    before = mallinfo2();
    char *huge = malloc(100 * MIB);
    CHECK(huge != NULL);
    full = mallinfo2();
    CHECK_MSG(full.hblkhd + full.uordblks >= before.hblkhd + before.uordblks + 100 * MIB,
              "a huge block is not counted");
    free(huge);
}

/* Runs `report` with `descriptor` redirected to a file and returns what it wrote. */
static char *captured(int descriptor, void (*report)(void), size_t *length)
{
    static char text[MIB];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    fflush(NULL);
    int saved = dup(descriptor);
    CHECK(saved >= 0 && dup2(fileno(file), descriptor) >= 0);
    report();
    fflush(NULL);
    dup2(saved, descriptor);
    close(saved);
    ssize_t n = pread(fileno(file), text, sizeof text - 1, 0);
    CHECK(n >= 0);
    text[n] = 0;
    fclose(file);
    *length = (size_t)n;
    return text;
}

/* The largest whole number in the text, whatever it counts. */
static size_t largest_number(const char *text)
{
    size_t largest = 0;
    while (*text != 0) {
        char *end;
        if (*text >= '0' && *text <= '9') {
            size_t value = (size_t)strtoull(text, &end, 10);
            largest = value > largest ? value : largest;
            text = end;
        } else {
            text++;
        }
    }
    return largest;
}

static void stats_are_written(void)
{
    static char empty[MIB];
    size_t length;
    strcpy(empty, captured(STDERR_FILENO, malloc_stats, &length));
    fill();
    char *text = captured(STDERR_FILENO, malloc_stats, &length);
    drain();
    CHECK_MSG(length > 0, "malloc_stats writes nothing to stderr");
    /* The unit is the writer's choice: bytes, or MiB at the coarsest. */
    CHECK_MSG(largest_number(text) >= (size_t)COUNT * SIZE / MIB && strcmp(text, empty) != 0,
              "malloc_stats has no figure for 64 MiB in use: %s", text);
}

/* A small check of well-formedness: every tag opened is closed in order, one root, attributes quoted. */
static void expect_xml(const char *text)
{
    char stack[32][64];
    int depth = 0, roots = 0;
    const char *at = text;
    while ((at = strchr(at, '<')) != NULL) {
        const char *end = strchr(at, '>');
        CHECK_MSG(end != NULL, "unclosed '<' in %s", at);
        const char *name = at + 1;
        if (*name == '?' || *name == '!') {
            at = end + 1;
            continue;
        }
        bool closes = *name == '/';
        name += closes;
        size_t length = strcspn(name, " \t\n/>");
        CHECK_MSG(length > 0 && length < 64, "bad tag at %.40s", at);
        if (closes) {
            CHECK_MSG(depth > 0 && strncmp(stack[depth - 1], name, length) == 0 && stack[depth - 1][length] == 0,
                      "</%.*s> closes nothing", (int)length, name);
            depth--;
        } else {
            int quotes = 0;
            for (const char *c = name; c < end; c++)
                quotes += *c == '"';
            CHECK_MSG(quotes % 2 == 0, "odd quotes in %.60s", at);
            roots += depth == 0;
            if (end[-1] != '/') {
                CHECK(depth < 32);
                memcpy(stack[depth], name, length);
                stack[depth++][length] = 0;
            }
        }
        at = end + 1;
    }
    CHECK_MSG(depth == 0 && roots == 1, "not one closed root element (depth %d, roots %d)", depth, roots);
    CHECK_MSG(strncmp(text, "<malloc", 7) == 0 || strncmp(text, "<?xml", 5) == 0, "root is not <malloc>: %.40s", text);
}

static int info_result;

static void info_to_stdout(void)
{
    info_result = malloc_info(0, stdout);
}

static void info_is_xml(void)
{
    size_t length;
    fill();
    char *text = captured(STDOUT_FILENO, info_to_stdout, &length);
    drain();
    CHECK(info_result == 0 && length > 0);
    expect_xml(text);
    CHECK_MSG(largest_number(text) >= (size_t)COUNT * SIZE, "malloc_info has no figure for 64 MiB in use: %.400s",
              text);
    errno = 0;
    int wrong = malloc_info(1, stdout);
    CHECK_MSG(wrong != 0, "malloc_info accepts options it does not know");
}

static void trim_gives_memory_back(void)
{
    malloc_trim(0);
    size_t empty = proc_resident_bytes();
    fill();
    size_t full = proc_resident_bytes();
    CHECK(full >= empty + 50 * MIB);
    drain();
    int released = malloc_trim(0);
    CHECK_MSG(released == 0 || released == 1, "malloc_trim = %d", released);
    size_t trimmed = proc_resident_bytes();
    CHECK_MSG(trimmed <= empty + 8 * MIB, "resident: %zu empty, %zu full, %zu freed and trimmed", empty, full, trimmed);
    CHECK_MSG(malloc_trim(0) == 0 || !test_is_sutler(), "a second malloc_trim in a row finds memory again");
}

/* What mallinfo(3) says of each; free memory is memory, not address space nobody has touched. */
static void free_memory_is_memory(void)
{
    malloc_trim(0);
    size_t resident = proc_resident_bytes();
    void *few[] = {malloc(200 * KIB), malloc(1500 * KIB), malloc(60 * KIB), malloc(7000)};
    struct mallinfo2 now = mallinfo2();
    CHECK_MSG(now.fordblks <= resident, "%zu bytes free of %zu resident", now.fordblks, resident);
    for (int i = 0; i < 4; i++)
        free(few[i]);
    fill();
    struct mallinfo2 full = mallinfo2();
    for (int i = 0; i < COUNT; i += 2)
        free(blocks[i]);
    struct mallinfo2 half = mallinfo2();
    for (int i = 1; i < COUNT; i += 2)
        free(blocks[i]);
    const size_t freed = (size_t)COUNT / 2;
    CHECK(half.arena == half.uordblks + half.fordblks && full.arena == full.uordblks + full.fordblks);
    CHECK_MSG(half.ordblks >= full.ordblks + freed && half.ordblks <= full.ordblks + freed * 5 / 4,
              "%zu free blocks became %zu", full.ordblks, half.ordblks);
    CHECK(half.fordblks >= full.fordblks + freed * SIZE && half.keepcost >= freed * SIZE &&
          half.keepcost <= half.fordblks);
    CHECK(half.smblks == 0 && half.fsmblks == 0 && half.usmblks == 0);
}

static void options_are_answered(void)
{
    /* Accepted: the well-known ones a program may set; refused: what nobody knows. */
    CHECK(mallopt(M_TRIM_THRESHOLD, 128 * 1024) == 1);
    CHECK(mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
    CHECK(mallopt(M_ARENA_MAX, 2) == 1);
    /* What would change what the program sees, and does not; and what the manual calls wrong. */
    CHECK_MSG(mallopt(M_PERTURB, 0xa5) == 0 || !test_is_sutler(), "M_PERTURB is accepted, and does nothing");
    CHECK(mallopt(M_CHECK_ACTION, 3) == 0 || !test_is_sutler());
    CHECK(mallopt(M_MXFAST, 64) == 1 && mallopt(M_MXFAST, 1 << 20) == 0);
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0);
    CHECK_MSG(mallopt(123456, 1) == 0 || !test_is_sutler(), "mallopt accepts an unknown parameter");
}

int main(void)
{
    test_begin(60);
    figures_of_mallinfo2();
    stats_are_written();
    info_is_xml();
    trim_gives_memory_back();
    if (test_is_sutler())
        free_memory_is_memory();
    options_are_answered();
    return 0;
}
