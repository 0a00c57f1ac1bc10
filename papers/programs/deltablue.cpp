/* SPDX-License-Identifier: MIT
 *
 * Why: DeltaBlue is the object-oriented benchmark of the malloc literature (the solver is in constraints.hpp).  Three
 * tests, each checked: a chain of equalities edited at its head; a projection of many points through one scale and
 * offset; a random tree of equalities edited at random places.  An operation is one constraint executed or added.
 */
#include "args.h"
#include "clock.h"
#include "constraints.hpp"
#include "random.h"
#include "result.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace
{
using Variables = std::vector<std::unique_ptr<Variable>>;

Variables variables_new(uint64_t count)
{
    Variables variables;
    for (uint64_t i = 0; i < count; i++)
        variables.push_back(std::make_unique<Variable>(static_cast<int64_t>(i)));
    return variables;
}

// Sets a variable through an edit constraint, with a plan of its own, `times` times.
void edit(Solver &solver, Variable *variable, int64_t first_value, int times)
{
    Constraint *input = new Edit(Preferred, variable);
    solver.add(input);
    const std::unique_ptr<Plan> plan = solver.plan_from({input});
    for (int i = 0; i < times; i++) {
        variable->value = first_value + i;
        solver.execute(*plan);
    }
    solver.remove(input);
}

uint64_t chain_test(Solver &solver, uint64_t length)
{
    uint64_t errors = 0;
    Variables variables = variables_new(length + 1);
    std::vector<Constraint *> links;
    for (uint64_t i = 0; i < length; i++) {
        links.push_back(new Equal(Required, variables[i].get(), variables[i + 1].get()));
        solver.add(links.back());
    }
    Constraint *stay = new Stay(StrongDefault, variables[length].get());
    solver.add(stay);
    for (int round = 0; round < 4; round++) {
        edit(solver, variables[0].get(), round * 100, 10);
        for (const auto &variable : variables)
            errors += variable->value != round * 100 + 9;
    }
    solver.remove(stay);
    for (Constraint *link : links)
        solver.remove(link);
    return errors;
}

uint64_t projection_test(Solver &solver, uint64_t points)
{
    uint64_t errors = 0;
    Variables from = variables_new(points), to = variables_new(points);
    Variable scale(10), offset(1000);
    std::vector<Constraint *> constraints;
    auto put = [&](Constraint *constraint) {
        constraints.push_back(constraint);
        solver.add(constraint);
    };
    for (uint64_t i = 0; i < points; i++) {
        put(new Stay(Normal, from[i].get()));
        put(new Linear(Required, from[i].get(), to[i].get(), &scale, &offset));
    }
    for (uint64_t i = 0; i < points; i++)
        errors += to[i]->value != static_cast<int64_t>(i) * 10 + 1000;
    edit(solver, from[0].get(), 17, 1);
    errors += to[0]->value != 1170;
    edit(solver, to[0].get(), 1050, 1);
    errors += from[0]->value != 5;
    edit(solver, &scale, 3, 3);
    for (uint64_t i = 1; i < points; i++)
        errors += to[i]->value != static_cast<int64_t>(i) * 5 + 1000;
    edit(solver, &offset, 2000, 1);
    for (uint64_t i = 1; i < points; i++)
        errors += to[i]->value != static_cast<int64_t>(i) * 5 + 2000;
    for (Constraint *constraint : constraints)
        solver.remove(constraint);
    return errors;
}

uint64_t tree_test(Solver &solver, uint64_t nodes, random_source *random)
{
    uint64_t errors = 0;
    Variables variables = variables_new(nodes);
    std::vector<Constraint *> links;
    for (uint64_t i = 1; i < nodes; i++) {
        links.push_back(new Equal(Required, variables[random_below(random, i)].get(), variables[i].get()));
        solver.add(links.back());
    }
    Constraint *stay = new Stay(WeakDefault, variables[nodes - 1].get());
    solver.add(stay);
    for (int round = 0; round < 8; round++) {
        edit(solver, variables[random_below(random, nodes)].get(), round * 1000, 3);
        for (const auto &variable : variables)
            errors += variable->value != round * 1000 + 2;
    }
    solver.remove(stay);
    for (Constraint *link : links)
        solver.remove(link);
    return errors;
}
} // namespace

int main(int argc, char **argv)
{
    uint64_t size = 1500, rounds = 20;
    const struct arg args[] = {
        {"size", ARG_COUNT, &size, "variables of each test"},
        {"rounds", ARG_COUNT, &rounds, "times all tests run"},
    };
    ARGS_READ("deltablue", argc, argv, args);
    if (size < 2)
        args_reject("size", "at least 2");
    random_source random;
    random_seed(&random, args_seed());
    Solver solver;
    uint64_t errors = 0;
    const uint64_t begin_ns = clock_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        errors += chain_test(solver, size);
        errors += projection_test(solver, size);
        errors += tree_test(solver, size, &random);
    }
    const uint64_t end_ns = clock_ns();
    errors += solver.failed;
    result_begin("deltablue", 1, solver.operations, end_ns - begin_ns);
    result_count("size", size);
    return result_end(errors);
}
