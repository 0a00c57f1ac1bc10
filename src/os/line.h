/* SPDX-License-Identifier: MIT
 *
 * Lines of text without libc: an allocator that reports a broken heap cannot call printf, which allocates.  A line is
 * built in a buffer on the stack and written by one system call, so that lines of several threads do not mix.
 * Text beyond the buffer is cut.  Async-signal-safe.
 */
#ifndef SUTLER_OS_LINE_H
#define SUTLER_OS_LINE_H

#include "base/compiler.h"

#define LINE_MOST 1000

struct line {
    size_t used;
    char text[LINE_MOST + 1]; /* room for a NUL */
};

#define LINE_EMPTY ((struct line){.used = 0})

void line_text(struct line *line, const char *text);
void line_hex(struct line *line, uintptr_t value); /* 0x... */
void line_dec(struct line *line, uint64_t value);
/* As printf does, but it knows these only: %s, %lu and %p, which is written as line_hex writes it. */
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);
/* Bytes with a unit a person reads: "12.3 MiB". */
void line_bytes(struct line *line, uint64_t bytes);
/* Pads with spaces to `column`. */
void line_pad(struct line *line, size_t column);
/* Its text, with a NUL behind it. */
const char *line_end(struct line *line);
/* Writes the line to `fd` and empties it.  errors of write(2) are ignored: there is nobody to tell. */
void line_flush(struct line *line, int fd);
/* Writes it to standard error, unless that is something else by now (os_standard_error_is_written), and empties it. */
void line_tell(struct line *line);

bool text_equal(const char *a, const char *b);
size_t text_length(const char *text);
bool text_begins(const char *text, const char *prefix);
/* The number after blanks; SIZE_MAX if there is none. */
size_t text_number(const char *text);
/* What follows so many words, with a blank behind each; the end if there are fewer. */
const char *text_after_words(const char *text, unsigned count);

#endif
