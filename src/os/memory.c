/* SPDX-License-Identifier: MIT */
#include "os/memory.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

/* The first bytes of the library, or of the program, that this file is a part of. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

bool os_is_shared_library(void)
{
    return getauxval(AT_PHDR) - (uintptr_t)__ehdr_start >= OS_PAGE_BYTES_MIN;
}

/* ---- mappings ---- */

static uintptr_t hex(const char **at)
{
    uintptr_t value = 0;
    for (;; ++*at) {
        if (**at >= '0' && **at <= '9')
            value = value << 4 | (uintptr_t)(**at - '0');
        else if (**at >= 'a' && **at <= 'f')
            value = value << 4 | (uintptr_t)(**at - 'a' + 10);
        else
            return value;
    }
}

static char text[65536]; /* of the list; whoever reads that has this variable: a list without it is not the process's */

/* "START-END rwxp OFFSET DEVICE INODE   NAME" */
static bool visit_line(const char *line, os_visit_mapping *visit, void *context, bool *own_seen)
{
    const char *at = line;
    struct os_mapping m = {.span.start = hex(&at)};
    at += *at == '-';
    m.span.end = hex(&at);
    if (*at++ != ' ')
        return false;
    const bool is_private = at[0] == 'r' && at[3] == 'p';
    m.is_writable = at[1] == 'w';
    while (*at != '\0' && *at != '[' && *at != '/')
        at++;
    const bool is_systems = at[0] == '[' && at[1] == 'v';
    m.is_anonymous = at[0] != '/';
    *own_seen |= (uintptr_t)text >= m.span.start && (uintptr_t)text < m.span.end;
    return !is_private || is_systems || visit(context, m);
}

bool os_mappings_each(os_visit_mapping *visit, void *context)
{
    size_t used = 0;
    bool goes_on = true, own_seen = false;
    long fd = os_open("/proc/thread-self/maps"), n = 0; /* the process's own is empty when its first thread has ended */
    if (sys_failed(fd))
        return false;
    while (goes_on && (n = sys_call(SYS_read, fd, (long)(text + used), (long)(sizeof text - used), 0, 0, 0)) > 0) {
        size_t start = 0;
        used += (size_t)n;
        for (size_t i = used - (size_t)n; i < used && goes_on; i++)
            if (text[i] == '\n') {
                text[i] = '\0';
                goes_on = visit_line(text + start, visit, context, &own_seen);
                start = i + 1;
            }
        used -= start;
        __builtin_memmove(text, text + start, used);
    }
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return goes_on && n == 0 && used == 0 && own_seen;
}

/* ---- pages ---- */

/* <linux/fs.h> of Linux 6.7. */
struct scan {
    uint64_t size, flags, start, end, walk_end, vector, vector_length, most_pages, inverted, all_of, any_of, returned;
};
struct scanned {
    uint64_t start, end, categories;
};
#define PAGEMAP_SCAN      0xc0606610ul
#define SCAN_PROTECTS     1u
#define SCAN_OF_TRACKED   2u /* -EPERM of a mapping that is not */
#define CATEGORY_WRITTEN  (1u << 1)
#define CATEGORY_FILE     (1u << 2)
#define CATEGORY_PRESENT  (1u << 3)
#define CATEGORY_SWAPPED  (1u << 4)
#define CATEGORY_ZERO     (1u << 5)
#define CATEGORY_GUARD    (1u << 8) /* Linux 6.16 */
_Static_assert(sizeof(struct scan) == 0x60, "part of the number of the call");

void os_pages_close(long pages)
{
    sys_call(SYS_close, pages, 0, 0, 0, 0, 0);
}

#define SCANNED_MAX 64u

static long scan(long pages, enum os_pages which, uintptr_t *at, uintptr_t end, struct os_pages_range *found,
                 unsigned most, uint64_t excluded)
{
    const bool is_tracked = which != os_pages_all;
    const uint64_t written = is_tracked ? CATEGORY_WRITTEN : 0;
    struct scanned vector[SCANNED_MAX];
    struct scan s = {.size = sizeof s,
                     .flags = is_tracked ? SCAN_PROTECTS | SCAN_OF_TRACKED : 0,
                     .start = *at,
                     .end = end,
                     .vector = (uintptr_t)vector,
                     .vector_length = min_size(most, SCANNED_MAX),
                     .most_pages = is_tracked ? OS_PAGES_MOST / os_page_bytes : 0,
                     .inverted = excluded,
                     .all_of = excluded | written,
                     .any_of = CATEGORY_PRESENT | CATEGORY_SWAPPED,
                     .returned = CATEGORY_PRESENT};
    long count = sys_call(SYS_ioctl, pages, (long)PAGEMAP_SCAN, (long)&s, 0, 0, 0);
    for (long i = 0; i < count; i++)
        found[i] = (struct os_pages_range){{vector[i].start, vector[i].end}, vector[i].categories == CATEGORY_PRESENT};
    if (count == 0 && is_tracked && s.walk_end < end)
        return -EPERM; /* a page of more than OS_PAGES_MOST: the system leaves it alone, and would again */
    if (count >= 0)
        *at = s.walk_end;
    return count;
}

/* The same before Linux 6.7, a word a page. */
static int look(long pages, uintptr_t *at, uintptr_t end, struct os_pages_range *found, unsigned most)
{
    const uint64_t present = 1ull << 63, swapped = 1ull << 62, file = 1ull << 61;
    uint64_t word[128];
    unsigned count = 0;
    const size_t wanted = min_size((end - *at) / os_page_bytes, ARRAY_LEN(word));
    long n = sys_call(SYS_pread64, pages, (long)word, (long)(wanted * sizeof word[0]),
                      (long)(*at / os_page_bytes * sizeof word[0]), 0, 0);
    if (n <= 0)
        return -1;
    for (size_t i = 0; i < (size_t)n / sizeof word[0]; i++, *at += os_page_bytes) {
        if ((word[i] & (present | swapped)) == 0 || (word[i] & file) != 0)
            continue;
        const bool is_there = (word[i] & present) != 0;
        if (count > 0 && found[count - 1].span.end == *at && found[count - 1].is_there == is_there)
            found[count - 1].span.end += os_page_bytes;
        else if (count < most)
            found[count++] = (struct os_pages_range){{*at, *at + os_page_bytes}, is_there};
        else
            break;
    }
    return (int)count;
}

int os_pages_find(long pages, enum os_pages which, uintptr_t *at, uintptr_t end, struct os_pages_range *found,
                  unsigned most)
{
    static bool knows_guards = true, can_scan = true;
    const uint64_t excluded = CATEGORY_FILE | CATEGORY_ZERO;
    long count = -EINVAL;
    if (can_scan && knows_guards)
        count = scan(pages, which, at, end, found, most, excluded | CATEGORY_GUARD);
    if (count == -EINVAL && can_scan && (count = scan(pages, which, at, end, found, most, excluded)) != -EINVAL)
        knows_guards = false;
    if (count == -EPERM && which == os_pages_written) /* it is not tracked */
        return os_pages_find(pages, os_pages_all, at, end, found, most);
    if (count < 0 && which == os_pages_all && (count = look(pages, at, end, found, most)) >= 0)
        can_scan = false;
    return count < 0 ? -1 : (int)count;
}

/* ---- writes ---- */

/* <linux/userfaultfd.h> of Linux 6.7. */
#define TRACKER_API       0xc018aa3ful
#define TRACKER_REGISTER  0xc020aa00ul
#define TRACKER_OF_USERS  1ul /* no privilege is needed */
#define TRACKER_FEATURES  (1ull << 13 | 1ull << 15)
#define TRACKER_OF_WRITES 2ull

static long tracker = -1;

bool os_track_begin(void)
{
    struct {
        uint64_t api, features, calls;
    } wanted = {.api = 0xaa, .features = TRACKER_FEATURES};
    tracker = sys_call(SYS_userfaultfd, O_CLOEXEC | TRACKER_OF_USERS, 0, 0, 0, 0, 0);
    if (sys_failed(tracker))
        return false;
    if (!sys_failed(sys_call(SYS_ioctl, tracker, (long)TRACKER_API, (long)&wanted, 0, 0, 0)))
        return true;
    os_track_end();
    return false;
}

bool os_track_mapping(struct os_span mapping)
{
    struct {
        uint64_t start, length, mode, calls;
    } range = {.start = mapping.start, .length = mapping.end - mapping.start, .mode = TRACKER_OF_WRITES};
    return !sys_failed(sys_call(SYS_ioctl, tracker, (long)TRACKER_REGISTER, (long)&range, 0, 0, 0));
}

void os_track_end(void)
{
    sys_call(SYS_close, tracker, 0, 0, 0, 0, 0);
}

/* ---- protection keys ---- */

#if defined(__x86_64__)
static bool has_keys(void)
{
    enum { unknown, none, some };
    static _Atomic int found; /* whoever helps to read may ask as well */
    unsigned a, b, c = 0, d;
    if (found == unknown)
        found = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & bit_OSPKE) != 0 ? some : none;
    return found == some;
}

static void set_rights(uint32_t rights)
{
    __asm__ volatile("wrpkru" : : "a"(rights), "c"(0), "d"(0) : "memory");
}

bool os_keys_are_known(void)
{
    return true;
}

struct os_keys os_keys_open(void)
{
    struct os_keys before = {.are_there = has_keys()};
    uint32_t zero;
    if (before.are_there) {
        __asm__ volatile("rdpkru" : "=a"(before.rights), "=d"(zero) : "c"(0));
        set_rights(0);
    }
    return before;
}

void os_keys_restore(struct os_keys before)
{
    if (before.are_there)
        set_rights(before.rights);
}
#else
bool os_keys_are_known(void)
{
    return false;
}

struct os_keys os_keys_open(void)
{
    return (struct os_keys){0};
}

void os_keys_restore(struct os_keys before)
{
    (void)before;
}
#endif

/* ---- bytes ---- */

long os_memory_read(void *to, uintptr_t from, size_t bytes)
{
    const struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    /* The first thread may have ended, and have no memory any more. */
    long own = sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    long n = sys_call(SYS_process_vm_readv, own, (long)&local, 1, (long)&remote, 1, 0);
    if (n == -EFAULT)
        return 0;
    return sys_failed(n) ? -1 : n;
}
