/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's roboop row: a C++ program for robot arms whose every matrix, vector and intermediate result is a small
 * heap object.  This one moves an arm of six revolute joints (Denavit-Hartenberg parameters) to random poses: forward
 * kinematics by products of 4x4 transforms, the 6x6 geometric Jacobian, and inverse kinematics by damped least squares,
 * each step solving a linear system by elimination.
 *
 * Checked: each pose found is put through the forward kinematics again and must agree.  An operation is one matrix
 * made.
 */
#include "args.h"
#include "clock.h"
#include "random.h"
#include "result.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace
{
uint64_t matrices_made;

class Matrix
{
  public:
    Matrix(int row_count, int column_count)
        : rows(row_count), columns(column_count), cell(new double[static_cast<size_t>(row_count * column_count)]())
    {
        matrices_made++;
    }
    Matrix(const Matrix &other) : Matrix(other.rows, other.columns)
    {
        for (int i = 0; i < rows * columns; i++)
            cell[i] = other.cell[i];
    }
    Matrix(Matrix &&other) noexcept : rows(other.rows), columns(other.columns), cell(std::exchange(other.cell, nullptr))
    {
    }
    Matrix &operator=(Matrix other)
    {
        std::swap(rows, other.rows);
        std::swap(columns, other.columns);
        std::swap(cell, other.cell);
        return *this;
    }
    ~Matrix()
    {
        delete[] cell;
    }

    double &operator()(int row, int column)
    {
        return cell[row * columns + column];
    }
    double operator()(int row, int column) const
    {
        return cell[row * columns + column];
    }

    int rows, columns;

  private:
    double *cell;
};

Matrix identity(int size)
{
    Matrix result(size, size);
    for (int i = 0; i < size; i++)
        result(i, i) = 1;
    return result;
}

Matrix operator*(const Matrix &a, const Matrix &b)
{
    Matrix product(a.rows, b.columns);
    for (int i = 0; i < a.rows; i++) {
        for (int k = 0; k < a.columns; k++) {
            for (int j = 0; j < b.columns; j++)
                product(i, j) += a(i, k) * b(k, j);
        }
    }
    return product;
}

Matrix operator*(double factor, const Matrix &a)
{
    Matrix result(a);
    for (int i = 0; i < a.rows; i++) {
        for (int j = 0; j < a.columns; j++)
            result(i, j) *= factor;
    }
    return result;
}

Matrix operator+(const Matrix &a, const Matrix &b)
{
    Matrix sum(a);
    for (int i = 0; i < a.rows; i++) {
        for (int j = 0; j < a.columns; j++)
            sum(i, j) += b(i, j);
    }
    return sum;
}

Matrix transposed(const Matrix &a)
{
    Matrix result(a.columns, a.rows);
    for (int i = 0; i < a.rows; i++) {
        for (int j = 0; j < a.columns; j++)
            result(j, i) = a(i, j);
    }
    return result;
}

// x with a x = b, by elimination with row exchange.  The damped systems solved here are never singular.
Matrix solved(Matrix a, Matrix b)
{
    const int size = a.rows;
    for (int column = 0; column < size; column++) {
        int pivot = column;
        for (int row = column + 1; row < size; row++) {
            if (std::fabs(a(row, column)) > std::fabs(a(pivot, column)))
                pivot = row;
        }
        for (int j = 0; j < size; j++)
            std::swap(a(column, j), a(pivot, j));
        std::swap(b(column, 0), b(pivot, 0));
        for (int row = 0; row < size; row++) {
            if (row == column)
                continue;
            const double factor = a(row, column) / a(column, column);
            for (int j = column; j < size; j++)
                a(row, j) -= factor * a(column, j);
            b(row, 0) -= factor * b(column, 0);
        }
    }
    for (int row = 0; row < size; row++)
        b(row, 0) /= a(row, row);
    return b;
}

struct Link {
    double twist, length, offset; // Denavit-Hartenberg alpha, a, d
};

Matrix link_transform(const Link &link, double angle)
{
    Matrix t(4, 4);
    const double ct = std::cos(angle), st = std::sin(angle), ca = std::cos(link.twist), sa = std::sin(link.twist);
    const double rows[3][4] = {
        {ct, -st * ca, st * sa, link.length * ct}, {st, ct * ca, -ct * sa, link.length * st}, {0, sa, ca, link.offset}};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++)
            t(i, j) = rows[i][j];
    }
    t(3, 3) = 1;
    return t;
}

Matrix cross(const Matrix &a, const Matrix &b)
{
    Matrix result(3, 1);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        result(i, 0) = a(j, 0) * b(k, 0) - a(k, 0) * b(j, 0);
    }
    return result;
}

Matrix column_of(const Matrix &transform, int column)
{
    Matrix result(3, 1);
    for (int i = 0; i < 3; i++)
        result(i, 0) = transform(i, column);
    return result;
}

class Arm
{
  public:
    explicit Arm(std::vector<Link> given) : links(std::move(given))
    {
    }
    int joints() const
    {
        return static_cast<int>(links.size());
    }

    // The frames of the base and of every joint; the last is the hand's.
    std::vector<Matrix> frames(const Matrix &angles) const
    {
        std::vector<Matrix> result;
        result.push_back(identity(4));
        for (int i = 0; i < joints(); i++)
            result.push_back(result.back() * link_transform(links[static_cast<size_t>(i)], angles(i, 0)));
        return result;
    }

    Matrix jacobian(const std::vector<Matrix> &frame) const
    {
        Matrix result(6, joints());
        const Matrix hand = column_of(frame.back(), 3);
        for (int joint = 0; joint < joints(); joint++) {
            const Matrix axis = column_of(frame[static_cast<size_t>(joint)], 2);
            const Matrix arm = hand + -1.0 * column_of(frame[static_cast<size_t>(joint)], 3);
            const Matrix speed = cross(axis, arm);
            for (int i = 0; i < 3; i++) {
                result(i, joint) = speed(i, 0);
                result(i + 3, joint) = axis(i, 0);
            }
        }
        return result;
    }

    static Matrix pose_error(const Matrix &wanted, const Matrix &actual)
    {
        Matrix error(6, 1);
        const Matrix shift = column_of(wanted, 3) + -1.0 * column_of(actual, 3);
        Matrix turn(3, 1);
        for (int axis = 0; axis < 3; axis++)
            turn = turn + 0.5 * cross(column_of(actual, axis), column_of(wanted, axis));
        for (int i = 0; i < 3; i++) {
            error(i, 0) = shift(i, 0);
            error(i + 3, 0) = turn(i, 0);
        }
        return error;
    }

    // Moves `angles` until the hand is at `wanted`; false if it does not get there.
    bool reach(const Matrix &wanted, Matrix &angles) const
    {
        for (int step = 0; step < 200; step++) {
            const std::vector<Matrix> frame = frames(angles);
            const Matrix error = pose_error(wanted, frame.back());
            const double size = (transposed(error) * error)(0, 0);
            if (size < 1e-20)
                return true;
            const Matrix j = jacobian(frame);
            const Matrix jt = transposed(j);
            const double damping = size < 1e-6 ? 1e-10 : 1e-4;
            angles = angles + jt * solved(j * jt + damping * identity(6), error);
        }
        return false;
    }

  private:
    std::vector<Link> links;
};

double random_angle(random_source *random, double range)
{
    return (static_cast<double>(random_below(random, 1u << 20)) / (1u << 20) - 0.5) * range;
}
} // namespace

int main(int argc, char **argv)
{
    uint64_t poses = 20000;
    const struct arg args[] = {{"poses", ARG_COUNT, &poses, "poses to reach"}};
    ARGS_READ("kinematics", argc, argv, args);
    random_source random;
    random_seed(&random, args_seed());
    const double right = std::acos(0.0);
    const Arm arm({{right, 0.0, 0.67},
                   {0.0, 0.43, 0.0},
                   {-right, 0.02, 0.15},
                   {right, 0.0, 0.43},
                   {-right, 0.0, 0.0},
                   {0.0, 0.0, 0.06}});
    uint64_t reached = 0, errors = 0;
    const uint64_t begin_ns = clock_ns();
    for (uint64_t pose = 0; pose < poses; pose++) {
        Matrix target(arm.joints(), 1), angles(arm.joints(), 1);
        for (int i = 0; i < arm.joints(); i++) {
            target(i, 0) = random_angle(&random, 4.0);
            angles(i, 0) = target(i, 0) + random_angle(&random, 0.5);
        }
        const Matrix wanted = arm.frames(target).back();
        if (!arm.reach(wanted, angles))
            continue; // a start near a singular pose may not get there; most must
        const Matrix found = arm.frames(angles).back();
        reached++;
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++)
                errors += std::fabs(found(i, j) - wanted(i, j)) > 1e-8;
        }
    }
    const uint64_t end_ns = clock_ns();
    errors += reached * 10 < poses * 9;
    result_begin("kinematics", 1, matrices_made, end_ns - begin_ns);
    result_count("poses", poses);
    result_count("reached", reached);
    return result_end(errors);
}
