/* SPDX-License-Identifier: MIT */
#include "os/line.h"

#include <stdarg.h>

#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

static void put(struct line *line, char c)
{
    if (line->used < LINE_MOST)
        line->text[line->used++] = c;
}

void line_text(struct line *line, const char *text)
{
    while (*text != '\0')
        put(line, *text++);
}

static void line_number(struct line *line, uint64_t value, unsigned radix)
{
    char digits[24];
    size_t n = 0;
    do
        digits[n++] = "0123456789abcdef"[value % radix];
    while ((value /= radix) != 0);
    while (n > 0)
        put(line, digits[--n]);
}

void line_hex(struct line *line, uintptr_t value)
{
    line_text(line, "0x");
    line_number(line, value, 16);
}

void line_dec(struct line *line, uint64_t value)
{
    line_number(line, value, 10);
}

void line_add(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    for (; *format != '\0'; format++)
        if (*format != '%')
            put(line, *format);
        else if (*++format == 's')
            line_text(line, va_arg(values, const char *));
        else if (*format == 'p')
            line_hex(line, (uintptr_t)va_arg(values, const void *));
        else if (*++format == 'u') /* behind the l */
            line_dec(line, va_arg(values, uint64_t));
    va_end(values);
}

void line_bytes(struct line *line, uint64_t bytes)
{
    static const char *const unit[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    unsigned u = 0;
    uint64_t tenths = bytes * 10;
    while (tenths >= 10240 && u + 1 < ARRAY_LEN(unit)) {
        tenths /= 1024;
        u++;
    }
    line_dec(line, tenths / 10);
    if (u > 0)
        line_add(line, ".%lu", tenths % 10);
    line_text(line, unit[u]);
}

void line_pad(struct line *line, size_t column)
{
    while (line->used < min_size(column, LINE_MOST))
        put(line, ' ');
}

const char *line_end(struct line *line)
{
    line->text[line->used] = '\0';
    return line->text;
}

void line_flush(struct line *line, int fd)
{
    size_t done = 0;
    while (done < line->used) {
        long n = sys_call(SYS_write, fd, (long)(line->text + done), (long)(line->used - done), 0, 0, 0);
        if (n <= 0 && n != -EINTR)
            break;
        if (n > 0)
            done += (size_t)n;
    }
    line->used = 0;
}

void line_tell(struct line *line)
{
    if (os_standard_error_is_written()) {
        line_flush(line, 2);
        return;
    }
    long fd = os_open_standard_error();
    if (fd >= 0) {
        line_flush(line, (int)fd);
        sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    line->used = 0;
}

bool text_equal(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

size_t text_length(const char *text)
{
    size_t n = 0;
    while (text[n] != '\0')
        n++;
    return n;
}

bool text_begins(const char *text, const char *prefix)
{
    while (*prefix != '\0' && *text == *prefix)
        text++, prefix++;
    return *prefix == '\0';
}

size_t text_number(const char *text)
{
    while (*text == ' ')
        text++;
    if (*text < '0' || *text > '9')
        return SIZE_MAX;
    size_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (size_t)(*text - '0');
    return value;
}

const char *text_after_words(const char *text, unsigned count)
{
    for (; count > 0 && *text != '\0'; text++)
        count -= *text == ' ';
    return text;
}
