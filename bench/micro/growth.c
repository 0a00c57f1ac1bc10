/* SPDX-License-Identifier: MIT
 *
 * Why: programs that build something large spend most of their allocator's time in page faults.  Two builds:
 *   shape=tree   a binary tree of 2^depth nodes of 32 bytes (less one), built depth first
 *   shape=mixed  a chain of blocks of 16 to 512 bytes, all bytes written, up to `mib` MiB
 * Only the building is timed.  What was built is checked afterwards and never freed.  `build_cpu_seconds` is the
 * processor time of the whole process during the build: a helper thread's work counts.
 *
 * thp=off (a key all programs know) asks the same where huge pages are not to be had.
 */
#define _GNU_SOURCE
#include "args.h"
#include "result.h"
#include "team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct params {
    uint64_t threads, depth, mib, min, max;
    const char *shape;
} params = {.threads = 1, .depth = 22, .mib = 256, .min = 16, .max = 512, .shape = "tree"};

static bool is_tree;
static double build_cpu_seconds;

struct node {
    struct node *left, *right;
    uint64_t depth;
    uint64_t value;
};

struct link {
    struct link *next;
    uint64_t size;
};

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void *allocate(size_t size)
{
    void *block = malloc(size);
    if (!block) {
        fprintf(stderr, "growth: out of memory\n");
        exit(3);
    }
    return block;
}

static struct node *tree_build(uint64_t depth, uint64_t value)
{
    struct node *node = allocate(sizeof(*node));
    node->depth = depth;
    node->value = value;
    node->left = depth > 1 ? tree_build(depth - 1, 2 * value) : NULL;
    node->right = depth > 1 ? tree_build(depth - 1, 2 * value + 1) : NULL;
    return node;
}

static uint64_t tree_errors(const struct node *node, uint64_t depth, uint64_t value)
{
    if (!node)
        return depth != 0;
    return (node->depth != depth || node->value != value) + tree_errors(node->left, depth - 1, 2 * value) +
           tree_errors(node->right, depth - 1, 2 * value + 1);
}

static struct link *chain_build(struct random_source *random, uint64_t *blocks)
{
    struct link *chain = NULL;
    for (uint64_t filled = 0; filled < params.mib << 20; ++*blocks) {
        uint64_t size = random_between(random, params.min, params.max);
        struct link *link = allocate(size);
        memset(link, (int)(size & 255), size);
        link->next = chain;
        link->size = size;
        chain = link;
        filled += size;
    }
    return chain;
}

static uint64_t chain_errors(const struct link *link)
{
    uint64_t errors = 0;
    for (; link; link = link->next) {
        if (link->size < params.min || link->size > params.max)
            return errors + 1;
        for (uint64_t i = sizeof(*link); i < link->size; i++)
            errors += ((const unsigned char *)link)[i] != (link->size & 255);
    }
    return errors;
}

static void growth_setup(struct worker *worker)
{
    if (worker->index == 0)
        build_cpu_seconds = -cpu_seconds();
}

static void growth_work(struct worker *worker)
{
    if (is_tree) {
        worker->state = tree_build(params.depth, 1);
        worker->ops = (1ull << params.depth) - 1;
    } else {
        worker->state = chain_build(&worker->random, &worker->ops);
    }
    if (worker->index == 0)
        build_cpu_seconds += cpu_seconds();
}

static void growth_finish(struct worker *worker)
{
    worker->errors = is_tree ? tree_errors(worker->state, params.depth, 1) : chain_errors(worker->state);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each building one"},
        {"shape", ARG_TEXT, &params.shape, "tree or mixed"},
        {"depth", ARG_COUNT, &params.depth, "tree: levels, 1 to 40"},
        {"mib", ARG_COUNT, &params.mib, "mixed: MiB to build"},
        {"min", ARG_COUNT, &params.min, "mixed: smallest block, at least 16"},
        {"max", ARG_COUNT, &params.max, "mixed: largest block"},
    };
    ARGS_READ("growth", argc, argv, args);
    is_tree = !strcmp(params.shape, "tree");
    if (!is_tree && strcmp(params.shape, "mixed"))
        args_reject("shape", "tree or mixed");
    if (params.depth < 1 || params.depth > 40 || params.min < sizeof(struct link) || params.max < params.min)
        args_reject("depth, min, max", "depth 1 to 40, 16 <= min <= max");
    const struct team team = {
        .threads = params.threads, .setup = growth_setup, .work = growth_work, .finish = growth_finish};
    struct outcome outcome = team_run(&team);
    result_begin("growth", params.threads, outcome.ops, outcome.ns);
    result_text("shape", params.shape);
    result_real("build_cpu_seconds", build_cpu_seconds);
    return result_end(outcome.errors);
}
