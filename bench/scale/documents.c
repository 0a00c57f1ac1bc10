/* SPDX-License-Identifier: MIT
 *
 * Why: services spend their heap on documents: a request builds a tree of small nodes, strings and growing tables (here
 * the one a JSON parser would make), writes it out into a growing buffer, and drops all of it.  Nothing outlives its
 * request, but `threads` threads do so at once.
 *
 * A value is a number, a string, a list or an object; lists and objects keep their members in tables that grow by
 * doubling, objects their names in blocks of their own.  An operation is one document of about `values` values; its
 * text must have the length that was counted while it was built.
 */
#include "args.h"
#include "result.h"
#include "team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_DIGITS = 6, NAME_SHORTEST = 3, NAME_LONGEST = 24, TEXT_LONGEST = 200, MEMBERS_MOST = 12, FIRST_ROOM = 4 };
enum { DEEPEST = 6, FIRST_TEXT_BYTES = 256 };

static struct params {
    uint64_t threads, values, ops;
} params = {.threads = 64, .values = 300, .ops = 40};

enum kind { kind_number, kind_string, kind_list, kind_object };

struct value {
    enum kind kind;
    union {
        uint64_t number;
        char *string;
        struct {
            struct member *member;
            uint32_t count, room;
        };
    };
};

struct member {
    char *name; /* NULL in a list */
    struct value *value;
};

/* One document in the making. */
struct document {
    struct random_source *random;
    uint64_t values_left;
    uint64_t text_bytes; /* of what has been built so far */
};

struct text {
    char *bytes;
    uint64_t length, room;
};

static void *checked(void *block)
{
    if (block == NULL) {
        fprintf(stderr, "documents: out of memory\n");
        exit(3);
    }
    return block;
}

/* ---- building ---- */

static char *word_new(struct document *document, uint64_t shortest, uint64_t longest)
{
    uint64_t length = random_between(document->random, shortest, longest);
    char *word = checked(malloc(length + 1));
    memset(word, 'a' + (int)(length % 26), length);
    word[length] = '\0';
    document->text_bytes += length + 2; /* with its quotation marks */
    return word;
}

static void member_add(struct value *value, struct member member)
{
    if (value->count == value->room) {
        value->room = value->room == 0 ? FIRST_ROOM : 2 * value->room;
        value->member = checked(realloc(value->member, value->room * sizeof(*value->member)));
    }
    value->member[value->count++] = member;
}

static struct value *value_new(struct document *document, unsigned depth);

static void members_build(struct document *document, struct value *value, unsigned depth)
{
    uint64_t wanted = depth == 0 ? UINT64_MAX : random_between(document->random, 1, MEMBERS_MOST);
    document->text_bytes += 2; /* the brackets */
    for (; wanted > 0 && document->values_left > 0; wanted--) {
        char *name = value->kind == kind_object ? word_new(document, NAME_SHORTEST, NAME_LONGEST) : NULL;
        member_add(value, (struct member){name, value_new(document, depth + 1)});
        document->text_bytes += 1 + (name != NULL); /* comma and colon */
    }
}

static struct value *value_new(struct document *document, unsigned depth)
{
    struct value *value = checked(malloc(sizeof(*value)));
    enum kind kind = depth == 0 ? kind_object : (enum kind)random_below(document->random, depth < DEEPEST ? 4 : 2);
    *value = (struct value){.kind = kind};
    if (document->values_left > 0)
        document->values_left--;
    if (kind == kind_number) {
        value->number = random_between(document->random, 100000, 999999);
        document->text_bytes += NUMBER_DIGITS;
    } else if (kind == kind_string) {
        value->string = word_new(document, 1, TEXT_LONGEST);
    } else {
        members_build(document, value, depth);
    }
    return value;
}

/* ---- writing ---- */

static void text_add(struct text *text, const char *bytes, uint64_t length)
{
    if (text->length + length > text->room) {
        while (text->length + length > text->room)
            text->room = text->room == 0 ? FIRST_TEXT_BYTES : 2 * text->room;
        text->bytes = checked(realloc(text->bytes, text->room));
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void word_write(struct text *text, const char *word)
{
    text_add(text, "\"", 1);
    text_add(text, word, strlen(word));
    text_add(text, "\"", 1);
}

static void number_write(struct text *text, uint64_t number)
{
    char digits[NUMBER_DIGITS];
    for (int i = NUMBER_DIGITS - 1; i >= 0; i--, number /= 10)
        digits[i] = (char)('0' + number % 10);
    text_add(text, digits, NUMBER_DIGITS);
}

static void value_write(struct text *text, const struct value *value)
{
    if (value->kind == kind_number) {
        number_write(text, value->number);
        return;
    }
    if (value->kind == kind_string) {
        word_write(text, value->string);
        return;
    }
    text_add(text, value->kind == kind_object ? "{" : "[", 1);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->member[i].name != NULL) {
            word_write(text, value->member[i].name);
            text_add(text, ":", 1);
        }
        value_write(text, value->member[i].value);
        text_add(text, ",", 1);
    }
    text_add(text, value->kind == kind_object ? "}" : "]", 1);
}

/* ---- dropping ---- */

static void value_drop(struct value *value)
{
    if (value->kind == kind_string)
        free(value->string);
    if (value->kind == kind_list || value->kind == kind_object) {
        for (uint32_t i = 0; i < value->count; i++) {
            free(value->member[i].name);
            value_drop(value->member[i].value);
        }
        free(value->member);
    }
    free(value);
}

static void documents_work(struct worker *worker)
{
    for (uint64_t i = 0; i < params.ops; i++) {
        struct document document = {&worker->random, params.values, 0};
        struct text text = {.bytes = NULL};
        struct value *root = value_new(&document, 0);
        value_write(&text, root);
        worker->errors +=
            text.length != document.text_bytes || text.bytes[0] != '{' || text.bytes[text.length - 1] != '}';
        value_drop(root);
        free(text.bytes);
    }
    worker->ops = params.ops;
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads that answer requests at once"},
        {"values", ARG_COUNT, &params.values, "values in a document"},
        {"ops", ARG_COUNT, &params.ops, "documents per thread"},
    };
    ARGS_READ("documents", argc, argv, args);
    if (!params.values || !params.ops)
        args_reject("values, ops", "at least 1");
    const struct team team = {.threads = params.threads, .work = documents_work, .counted = true};
    struct outcome outcome = team_run(&team);
    result_begin("documents", params.threads, outcome.ops, outcome.ns);
    result_count("values", params.values);
    library_counts_print(&outcome.counts, 0);
    return result_end(outcome.errors);
}
