/* SPDX-License-Identifier: MIT
 *
 * Why: a server has many connections, of which each has buffers that fit what came last.  Each of `threads` threads
 * serves its share of `connections`.  A request picks one of them; its message, 1 KiB to 1 MiB long (every doubling as
 * likely), arrives in a buffer that grows by doubling; a header of short strings is taken out of it; the answer, as
 * long as another such message, is built in a buffer of its own, sent and dropped.  The input buffer stays with the
 * connection until its next request, or, one request in eight, until the client hangs up and another one takes its
 * place.
 *
 * An operation is a request.  The ends of each 4 KiB of a buffer are written, so that its pages are there, and checked.
 */
#include "args.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADERS = 8, HEADER_LONGEST = 120, HANG_UP_ONE_IN = 8, FIRST_BYTES = 1024, PAGE_BYTES = 4096 };

static struct params {
    uint64_t threads, connections, max, ops;
} params = {.threads = 2, .connections = 1000, .max = 1 << 20, .ops = 4000};

struct buffer {
    unsigned char *bytes;
    uint64_t room, length;
};

struct connection {
    uint64_t number, requests;
    char *header[HEADERS];
    struct buffer in;
};

static void *checked(void *block)
{
    if (block == NULL) {
        fprintf(stderr, "connections: out of memory\n");
        exit(3);
    }
    return block;
}

static uint64_t message_length(struct random_source *random)
{
    uint64_t doublings = 0;
    while ((uint64_t)FIRST_BYTES << doublings < params.max)
        doublings++;
    uint64_t low = doublings ? (uint64_t)FIRST_BYTES << random_below(random, doublings) : FIRST_BYTES;
    return random_between(random, low, 2 * low < params.max ? 2 * low : params.max);
}

static uint64_t piece_end(uint64_t at, uint64_t length)
{
    return at + PAGE_BYTES < length ? at + PAGE_BYTES : length;
}

/* Grown as a server does that does not know how much will come. */
static void buffer_receive(struct buffer *buffer, uint64_t length, unsigned char mark)
{
    if (buffer->bytes == NULL)
        *buffer = (struct buffer){.bytes = checked(malloc(FIRST_BYTES)), .room = FIRST_BYTES};
    for (uint64_t at = 0; at < length; at += PAGE_BYTES) {
        uint64_t end = piece_end(at, length);
        while (end > buffer->room) {
            buffer->room *= 2;
            buffer->bytes = checked(realloc(buffer->bytes, buffer->room));
        }
        buffer->bytes[at] = buffer->bytes[end - 1] = mark;
    }
    buffer->length = length;
}

static uint64_t buffer_errors(const struct buffer *buffer, unsigned char mark)
{
    uint64_t errors = 0;
    for (uint64_t at = 0; at < buffer->length; at += PAGE_BYTES)
        errors += buffer->bytes[at] != mark || buffer->bytes[piece_end(at, buffer->length) - 1] != mark;
    return errors;
}

static struct connection *connection_open(uint64_t number)
{
    struct connection *connection = checked(calloc(1, sizeof(*connection)));
    connection->number = number;
    return connection;
}

static void headers_drop(struct connection *connection)
{
    for (unsigned i = 0; i < HEADERS; i++) {
        free(connection->header[i]);
        connection->header[i] = NULL;
    }
}

static void headers_take(struct connection *connection, struct random_source *random)
{
    headers_drop(connection);
    for (unsigned i = 0; i < HEADERS; i++) {
        uint64_t length = random_between(random, 1, HEADER_LONGEST);
        connection->header[i] = checked(malloc(length + 1));
        memset(connection->header[i], 'a' + (int)i, length);
        connection->header[i][length] = '\0';
    }
}

static uint64_t connection_close(struct connection *connection)
{
    uint64_t errors = buffer_errors(&connection->in, (unsigned char)connection->requests);
    headers_drop(connection);
    free(connection->in.bytes);
    free(connection);
    return errors;
}

/* Returns the wrong results it found. */
static uint64_t request_serve(struct connection *connection, struct random_source *random)
{
    uint64_t errors = buffer_errors(&connection->in, (unsigned char)connection->requests);
    free(connection->in.bytes);
    connection->in = (struct buffer){.length = 0};
    connection->requests++;
    buffer_receive(&connection->in, message_length(random), (unsigned char)connection->requests);
    headers_take(connection, random);
    struct buffer out = {.length = message_length(random)};
    out.bytes = checked(malloc(out.length));
    for (uint64_t at = 0; at < out.length; at += PAGE_BYTES)
        out.bytes[at] = out.bytes[piece_end(at, out.length) - 1] = (unsigned char)connection->number;
    errors += buffer_errors(&out, (unsigned char)connection->number);
    free(out.bytes);
    return errors;
}

static uint64_t share(void)
{
    return params.connections / params.threads;
}

static void serve_setup(struct worker *worker)
{
    struct connection **connection = worker->state = pages_map(share() * sizeof(*connection));
    for (uint64_t i = 0; i < share(); i++) {
        connection[i] = connection_open(i);
        worker->errors += request_serve(connection[i], &worker->random);
    }
}

static void serve_work(struct worker *worker)
{
    struct connection **connection = worker->state;
    for (uint64_t i = 0; i < params.ops; i++) {
        uint64_t n = random_below(&worker->random, share());
        if (random_below(&worker->random, HANG_UP_ONE_IN) == 0) {
            worker->errors += connection_close(connection[n]);
            connection[n] = connection_open(n);
        }
        worker->errors += request_serve(connection[n], &worker->random);
    }
    worker->ops = params.ops;
}

static void serve_finish(struct worker *worker)
{
    struct connection **connection = worker->state;
    for (uint64_t i = 0; i < share(); i++)
        worker->errors += connection_close(connection[i]);
    pages_unmap(connection, share() * sizeof(*connection));
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads that share the connections out"},
        {"connections", ARG_COUNT, &params.connections, "connections"},
        {"max", ARG_COUNT, &params.max, "longest message, at least 1K"},
        {"ops", ARG_COUNT, &params.ops, "requests per thread"},
    };
    ARGS_READ("connections", argc, argv, args);
    if (!params.threads || params.connections < params.threads || params.max < FIRST_BYTES)
        args_reject("connections, max", "a connection per thread, max at least 1K");
    const struct team team = {.threads = params.threads,
                              .setup = serve_setup,
                              .work = serve_work,
                              .finish = serve_finish,
                              .counted = true};
    struct outcome outcome = team_run(&team);
    result_begin("connections", params.threads, outcome.ops, outcome.ns);
    result_count("connections", params.connections);
    library_counts_print(&outcome.counts, 0);
    return result_end(outcome.errors);
}
