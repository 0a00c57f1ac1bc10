/* SPDX-License-Identifier: MIT
 *
 * Why: Olden's treeadd: build a balanced binary tree and add up its values recursively.  Almost all of it is allocation
 * and page faults: nothing is ever freed.  `levels` as in MMT's table (27 there, on a machine with the memory for it);
 * the tree is added up `passes` times.  An operation is one node.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>

struct tree {
    int64_t value;
    struct tree *left, *right;
};

static struct tree *tree_new(uint64_t levels)
{
    struct tree *tree = malloc(sizeof(*tree));
    if (!tree) {
        fprintf(stderr, "treeadd: out of memory\n");
        exit(3);
    }
    tree->value = (int64_t)levels;
    tree->left = levels > 1 ? tree_new(levels - 1) : NULL;
    tree->right = levels > 1 ? tree_new(levels - 1) : NULL;
    return tree;
}

static int64_t tree_add(const struct tree *tree)
{
    return tree ? tree->value + tree_add(tree->left) + tree_add(tree->right) : 0;
}

int main(int argc, char **argv)
{
    uint64_t levels = 21, passes = 2;
    const struct arg args[] = {
        {"levels", ARG_COUNT, &levels, "levels of the tree, 1 to 32"},
        {"passes", ARG_COUNT, &passes, "times it is added up"},
    };
    ARGS_READ("treeadd", argc, argv, args);
    if (levels < 1 || levels > 32)
        args_reject("levels", "1 to 32");
    uint64_t begin_ns = clock_ns();
    struct tree *tree = tree_new(levels);
    int64_t sum = 0;
    for (uint64_t pass = 0; pass < passes; pass++)
        sum += tree_add(tree);
    uint64_t end_ns = clock_ns();
    int64_t expected = 0; /* level k from the bottom holds 2^(levels - k) nodes of value k */
    for (uint64_t level = 1; level <= levels; level++)
        expected += (int64_t)(level << (levels - level));
    result_begin("treeadd", 1, (1ull << levels) - 1, end_ns - begin_ns);
    result_count("levels", levels);
    result_count("checksum", (uint64_t)sum);
    return result_end(sum != expected * (int64_t)passes);
}
