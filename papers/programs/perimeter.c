/* SPDX-License-Identifier: MIT
 *
 * Why: Olden's perimeter: an image is kept as a quadtree whose leaves are squares of one colour, and the length of the
 * border between black and white is found by looking at the neighbours of every black leaf.  Many small nodes, built
 * once, then walked in all directions.
 *
 * The image here is a disc.  For each black leaf and each of the four directions the neighbour of at least the same
 * size is found through the parents; if it is split, the lengths of its white leaves along the common side count.  The
 * result is checked exactly: the border of a digital disc with one run per row has as many vertical unit edges as twice
 * its rows, and as many horizontal ones as twice its columns.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum colour { WHITE, BLACK, MIXED };
enum direction { NORTH, EAST, SOUTH, WEST, DIRECTIONS };

/* Quadrants: bit 0 set = east half, bit 1 set = south half. */
struct quad {
    enum colour colour;
    unsigned quadrant;
    struct quad *parent;
    struct quad *child[4];
};

static int64_t centre, radius;
static uint64_t quads;

static bool pixel_is_black(int64_t x, int64_t y)
{
    /* the centre of a pixel lies at odd coordinates in half pixels */
    int64_t dx = 2 * x + 1 - 2 * centre, dy = 2 * y + 1 - 2 * centre;
    return dx * dx + dy * dy <= 4 * radius * radius;
}

/* The colour of a square: a disc is convex, so all corners black means all black; all white is judged by the pixel
 * nearest to the centre. */
static enum colour square_colour(int64_t x, int64_t y, int64_t size)
{
    int64_t last_x = x + size - 1, last_y = y + size - 1;
    if (pixel_is_black(x, y) && pixel_is_black(last_x, y) && pixel_is_black(x, last_y) &&
        pixel_is_black(last_x, last_y))
        return BLACK;
    int64_t near_x = centre < x ? x : centre > last_x ? last_x : centre;
    int64_t near_y = centre < y ? y : centre > last_y ? last_y : centre;
    return pixel_is_black(near_x, near_y) ? MIXED : WHITE;
}

static struct quad *quad_build(struct quad *parent, unsigned quadrant, int64_t x, int64_t y, int64_t size)
{
    struct quad *quad = malloc(sizeof(*quad));
    if (!quad) {
        fprintf(stderr, "perimeter: out of memory\n");
        exit(3);
    }
    quads++;
    quad->parent = parent;
    quad->quadrant = quadrant;
    quad->colour = square_colour(x, y, size);
    for (unsigned i = 0; i < 4; i++) {
        int64_t half = size / 2;
        quad->child[i] =
            quad->colour == MIXED ? quad_build(quad, i, x + (i & 1) * half, y + (i >> 1) * half, half) : NULL;
    }
    return quad;
}

/* Which bit of a quadrant's number a direction crosses, and its value on the side the direction points to. */
static unsigned axis_bit(enum direction direction)
{
    return direction == EAST || direction == WEST ? 1 : 2;
}

static bool is_on_side(unsigned quadrant, enum direction direction)
{
    bool far_half = quadrant & axis_bit(direction);
    return far_half == (direction == EAST || direction == SOUTH);
}

/* The neighbour of the same size in a direction, or the larger leaf that covers its place; NULL beyond the image. */
static const struct quad *neighbour(const struct quad *quad, enum direction direction)
{
    if (!quad->parent)
        return NULL;
    if (!is_on_side(quad->quadrant, direction))
        return quad->parent->child[quad->quadrant ^ axis_bit(direction)];
    const struct quad *beyond = neighbour(quad->parent, direction);
    return beyond && beyond->colour == MIXED ? beyond->child[quad->quadrant ^ axis_bit(direction)] : beyond;
}

/* The length of white along one side of a square. */
static int64_t white_along(const struct quad *quad, enum direction side, int64_t size)
{
    if (quad->colour != MIXED)
        return quad->colour == WHITE ? size : 0;
    int64_t sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (is_on_side(i, side))
            sum += white_along(quad->child[i], side, size / 2);
    }
    return sum;
}

static int64_t perimeter(const struct quad *quad, int64_t size)
{
    static const enum direction opposite[DIRECTIONS] = {SOUTH, WEST, NORTH, EAST};
    int64_t sum = 0;
    if (quad->colour == MIXED) {
        for (unsigned i = 0; i < 4; i++)
            sum += perimeter(quad->child[i], size / 2);
    } else if (quad->colour == BLACK) {
        for (enum direction direction = NORTH; direction < DIRECTIONS; direction++) {
            const struct quad *beside = neighbour(quad, direction);
            sum += beside ? white_along(beside, opposite[direction], size) : size;
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    uint64_t levels = 17, passes = 2;
    const struct arg args[] = {
        {"levels", ARG_COUNT, &levels, "the image is 2^levels pixels wide, 2 to 24"},
        {"passes", ARG_COUNT, &passes, "times the perimeter is computed"},
    };
    ARGS_READ("perimeter", argc, argv, args);
    if (levels < 2 || levels > 24)
        args_reject("levels", "2 to 24");
    int64_t size = 1ll << levels;
    centre = size / 2;
    radius = size * 3 / 8;
    uint64_t begin_ns = clock_ns();
    struct quad *image = quad_build(NULL, 0, 0, 0, size);
    int64_t sum = 0;
    for (uint64_t pass = 0; pass < passes; pass++)
        sum += perimeter(image, size);
    uint64_t end_ns = clock_ns();
    int64_t rows = 0;
    for (int64_t y = 0; y < size; y++)
        rows += pixel_is_black(centre, y);
    result_begin("perimeter", 1, quads, end_ns - begin_ns);
    result_count("levels", levels);
    result_count("checksum", (uint64_t)sum);
    return result_end(sum != 4 * rows * (int64_t)passes);
}
