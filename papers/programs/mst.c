/* SPDX-License-Identifier: MIT
 *
 * Why: Olden's mst: the minimum spanning tree of a graph by Bentley's variant of Prim's method, every vertex keeping
 * the lengths of its edges in a hash table of its own.  The tables and their entries are the allocations: one small
 * block per edge and direction, looked up at random.
 *
 * The graph is complete up to `degree` neighbours each way around a ring, with lengths computed from the pair's
 * numbers. Checked against Kruskal's method over the same lengths, computed without any of the tables.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
    struct entry *next;
    const struct vertex *key;
    uint32_t length;
};

struct hash_table {
    struct entry **bucket;
    uint64_t mask;
};

struct vertex {
    struct vertex *next; /* in the list of vertices not yet in the tree */
    uint64_t number;
    uint64_t distance; /* to the nearest vertex in the tree */
    struct hash_table *edges;
};

static uint64_t vertices = 6000, degree = 48;

static void *allocate(size_t size)
{
    void *block = malloc(size);
    if (!block) {
        fprintf(stderr, "mst: out of memory\n");
        exit(3);
    }
    return block;
}

/* Symmetric, and different enough between pairs to make the tree interesting. */
static uint32_t edge_length(uint64_t a, uint64_t b)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    uint64_t mixed = (low * 0x9e3779b97f4a7c15u) ^ (high * 0xc2b2ae3d27d4eb4fu);
    mixed = (mixed ^ (mixed >> 31)) * 0x94d049bb133111ebu;
    return (uint32_t)(mixed >> 40) + 1;
}

static uint64_t hash_of(const struct vertex *key)
{
    return key->number * 0x9e3779b97f4a7c15u >> 40;
}

static struct hash_table *table_new(uint64_t entries)
{
    uint64_t buckets = 4;
    while (buckets * 2 < entries)
        buckets *= 2;
    struct hash_table *table = allocate(sizeof(*table));
    table->mask = buckets - 1;
    table->bucket = calloc(buckets, sizeof(*table->bucket));
    return table;
}

static void table_put(struct hash_table *table, const struct vertex *key, uint32_t length)
{
    struct entry **bucket = &table->bucket[hash_of(key) & table->mask];
    struct entry *entry = allocate(sizeof(*entry));
    entry->key = key;
    entry->length = length;
    entry->next = *bucket;
    *bucket = entry;
}

static bool table_get(const struct hash_table *table, const struct vertex *key, uint32_t *length)
{
    for (const struct entry *entry = table->bucket[hash_of(key) & table->mask]; entry; entry = entry->next) {
        if (entry->key == key) {
            *length = entry->length;
            return true;
        }
    }
    return false;
}

static void table_free(struct hash_table *table)
{
    for (uint64_t i = 0; i <= table->mask; i++) {
        for (struct entry *entry = table->bucket[i], *next; entry; entry = next) {
            next = entry->next;
            free(entry);
        }
    }
    free(table->bucket);
    free(table);
}

static struct vertex **graph_build(void)
{
    struct vertex **graph = allocate(vertices * sizeof(*graph));
    for (uint64_t i = 0; i < vertices; i++) {
        graph[i] = allocate(sizeof(*graph[i]));
        graph[i]->number = i;
        graph[i]->distance = UINT64_MAX;
        graph[i]->edges = table_new(2 * degree);
    }
    for (uint64_t i = 0; i < vertices; i++) {
        for (uint64_t step = 1; step <= degree; step++) {
            uint64_t other = (i + step) % vertices;
            uint32_t length = edge_length(i, other);
            table_put(graph[i]->edges, graph[other], length);
            table_put(graph[other]->edges, graph[i], length);
        }
    }
    for (uint64_t i = 0; i < vertices; i++)
        graph[i]->next = i + 1 < vertices ? graph[i + 1] : NULL;
    return graph;
}

/* Prim with the blue rule: each round, all remaining vertices look up their edge to the newest one in the tree. */
static uint64_t tree_length(struct vertex *newest)
{
    struct vertex *remaining = newest->next;
    uint64_t sum = 0;
    while (remaining) {
        struct vertex **nearest = NULL;
        for (struct vertex **link = &remaining; *link; link = &(*link)->next) {
            uint32_t length;
            if (table_get((*link)->edges, newest, &length) && length < (*link)->distance)
                (*link)->distance = length;
            if (!nearest || (*link)->distance < (*nearest)->distance)
                nearest = link;
        }
        newest = *nearest;
        *nearest = newest->next;
        sum += newest->distance;
    }
    return sum;
}

struct edge {
    uint32_t length, from, to;
};

static int edge_order(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;
    return (left->length > right->length) - (left->length < right->length);
}

static uint32_t set_find(uint32_t *leader, uint32_t vertex)
{
    while (leader[vertex] != vertex)
        vertex = leader[vertex] = leader[leader[vertex]];
    return vertex;
}

static uint64_t tree_length_by_kruskal(void)
{
    uint64_t count = 0, sum = 0;
    struct edge *edges = allocate(vertices * degree * sizeof(*edges));
    uint32_t *leader = allocate(vertices * sizeof(*leader));
    for (uint64_t i = 0; i < vertices; i++) {
        leader[i] = (uint32_t)i;
        for (uint64_t step = 1; step <= degree; step++) {
            uint64_t other = (i + step) % vertices;
            edges[count++] = (struct edge){edge_length(i, other), (uint32_t)i, (uint32_t)other};
        }
    }
    qsort(edges, count, sizeof(*edges), edge_order);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t from = set_find(leader, edges[i].from), to = set_find(leader, edges[i].to);
        if (from != to) {
            leader[from] = to;
            sum += edges[i].length;
        }
    }
    free(edges);
    free(leader);
    return sum;
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"vertices", ARG_COUNT, &vertices, "vertices of the graph"},
        {"degree", ARG_COUNT, &degree, "neighbours each way around the ring"},
    };
    ARGS_READ("mst", argc, argv, args);
    if (!degree || vertices <= 2 * degree || vertices > 1 << 24)
        args_reject("vertices, degree", "degree at least 1, more vertices than twice that");
    uint64_t begin_ns = clock_ns();
    struct vertex **graph = graph_build();
    uint64_t length = tree_length(graph[0]);
    for (uint64_t i = 0; i < vertices; i++) {
        table_free(graph[i]->edges);
        free(graph[i]);
    }
    free(graph);
    uint64_t end_ns = clock_ns();
    result_begin("mst", 1, 2 * vertices * degree, end_ns - begin_ns);
    result_count("vertices", vertices);
    result_count("degree", degree);
    result_count("checksum", length);
    return result_end(length != tree_length_by_kruskal());
}
