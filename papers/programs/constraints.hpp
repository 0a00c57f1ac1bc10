/* SPDX-License-Identifier: MIT
 *
 * Why: DeltaBlue, the incremental constraint solver of Freeman-Benson, Maloney and Borning (1990), written here from
 * the algorithm's description.  Variables, constraints and plans are small heap objects with virtual methods, made and
 * dropped all the time; deltablue.cpp is the benchmark.
 *
 * A constraint has a strength and may be satisfied by computing one of some of its variables from the others.  Each
 * variable knows which constraint determines it and its walkabout strength: the weakest constraint that would have to
 * give way if the variable were determined otherwise.  Adding a constraint looks for an output whose walkabout strength
 * is weaker than the constraint, evicts what determined it, and goes on with the evicted one; removing a constraint
 * gives the evicted ones their chance again.  A plan is the list of constraints to execute, in order, after an input
 * changed.
 */
#ifndef BENCH_CONSTRAINTS_HPP
#define BENCH_CONSTRAINTS_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

enum Strength { Required, StrongPreferred, Preferred, StrongDefault, Normal, WeakDefault, Weakest };

bool is_weaker(Strength a, Strength b)
{
    return a > b;
}

class Constraint;

struct Variable {
    explicit Variable(int64_t initial) : value(initial)
    {
    }
    int64_t value;
    std::vector<Constraint *> constraints; // all that mention it
    Constraint *determined_by = nullptr;
    uint64_t mark = 0; // the last pass that settled it
    Strength walkabout = Weakest;
    bool is_constant = true; // its value cannot change while a plan runs
};

class Solver;

class Constraint
{
  public:
    Constraint(Strength given, std::vector<Variable *> all, unsigned outputs)
        : strength(given), variables(std::move(all)), possible_outputs(outputs)
    {
        for (Variable *variable : variables)
            variable->constraints.push_back(this);
    }
    Constraint(const Constraint &) = delete;
    Constraint &operator=(const Constraint &) = delete;
    virtual ~Constraint()
    {
        for (Variable *variable : variables) {
            auto &list = variable->constraints;
            list.erase(std::find(list.begin(), list.end(), this));
        }
    }

    virtual void execute() = 0;
    virtual bool is_input() const
    {
        return false;
    }

    bool is_satisfied() const
    {
        return chosen != none;
    }
    Variable *output() const
    {
        return variables[chosen];
    }

    // The weakest of the possible outputs that this pass has not settled and that is weaker than the constraint.
    bool choose_output(uint64_t mark)
    {
        chosen = none;
        for (unsigned i = 0; i < possible_outputs; i++) {
            const Variable *candidate = variables[i];
            if (candidate->mark == mark || !is_weaker(candidate->walkabout, strength))
                continue;
            if (chosen == none || is_weaker(candidate->walkabout, variables[chosen]->walkabout))
                chosen = i;
        }
        return chosen != none;
    }

    bool inputs_known(uint64_t mark) const
    {
        for (unsigned i = 0; i < variables.size(); i++) {
            const Variable *variable = variables[i];
            if (i != chosen && variable->mark != mark && !variable->is_constant && variable->determined_by)
                return false;
        }
        return true;
    }

    void recalculate()
    {
        Variable *target = output();
        target->walkabout = strength;
        target->is_constant = !is_input();
        for (unsigned i = 0; i < variables.size(); i++) {
            if (i == chosen)
                continue;
            if (i < possible_outputs && is_weaker(variables[i]->walkabout, target->walkabout))
                target->walkabout = variables[i]->walkabout;
            target->is_constant = target->is_constant && variables[i]->is_constant;
        }
        if (target->is_constant)
            execute();
    }

    void mark_inputs(uint64_t mark)
    {
        for (unsigned i = 0; i < variables.size(); i++) {
            if (i != chosen)
                variables[i]->mark = mark;
        }
    }

    static constexpr unsigned none = ~0u;
    const Strength strength;
    std::vector<Variable *> variables; // possible outputs first
    const unsigned possible_outputs;
    unsigned chosen = none;
};

class Stay : public Constraint
{
  public:
    Stay(Strength given, Variable *variable) : Constraint(given, {variable}, 1)
    {
    }
    void execute() override
    {
    }
};

// The program sets the variable.
class Edit : public Stay
{
  public:
    using Stay::Stay;
    bool is_input() const override
    {
        return true;
    }
};

class Equal : public Constraint
{
  public:
    Equal(Strength given, Variable *a, Variable *b) : Constraint(given, {a, b}, 2)
    {
    }
    void execute() override
    {
        variables[chosen]->value = variables[1 - chosen]->value;
    }
};

// to = from * scale + offset, computed either way; scale and offset are only read.
class Linear : public Constraint
{
  public:
    Linear(Strength given, Variable *from, Variable *to, Variable *scale, Variable *offset)
        : Constraint(given, {from, to, scale, offset}, 2)
    {
    }
    void execute() override
    {
        const int64_t scale = variables[2]->value, offset = variables[3]->value;
        if (chosen == 1)
            variables[1]->value = variables[0]->value * scale + offset;
        else
            variables[0]->value = (variables[1]->value - offset) / scale;
    }
};

using Plan = std::vector<Constraint *>;

class Solver
{
  public:
    bool failed = false;
    uint64_t operations = 0;

    void add(Constraint *constraint)
    {
        const uint64_t mark = ++last_mark;
        for (Constraint *evicted = constraint; evicted && !failed;)
            evicted = satisfy(evicted, mark);
    }

    // Takes the constraint out of the graph and deletes it.
    void remove(Constraint *constraint)
    {
        if (!constraint->is_satisfied()) {
            delete constraint;
            return;
        }
        Variable *freed = constraint->output();
        delete constraint;
        std::vector<Constraint *> waiting = propagate_removal(freed);
        std::stable_sort(waiting.begin(), waiting.end(),
                         [](const Constraint *a, const Constraint *b) { return is_weaker(b->strength, a->strength); });
        for (Constraint *other : waiting)
            add(other);
    }

    std::unique_ptr<Plan> plan_from(const std::vector<Constraint *> &sources)
    {
        auto plan = std::make_unique<Plan>();
        const uint64_t mark = ++last_mark;
        std::vector<Constraint *> todo;
        for (Constraint *source : sources) {
            if (source->is_satisfied() && source->is_input())
                todo.push_back(source);
        }
        while (!todo.empty()) {
            Constraint *constraint = todo.back();
            todo.pop_back();
            if (constraint->output()->mark == mark || !constraint->inputs_known(mark))
                continue;
            plan->push_back(constraint);
            constraint->output()->mark = mark;
            push_consumers(constraint->output(), todo);
        }
        return plan;
    }

    void execute(const Plan &plan)
    {
        for (Constraint *constraint : plan)
            constraint->execute();
        operations += plan.size();
    }

  private:
    uint64_t last_mark = 0;

    static void push_consumers(const Variable *variable, std::vector<Constraint *> &todo)
    {
        for (Constraint *constraint : variable->constraints) {
            if (constraint != variable->determined_by && constraint->is_satisfied())
                todo.push_back(constraint);
        }
    }

    // Returns the constraint that had to give way, if one had.
    Constraint *satisfy(Constraint *constraint, uint64_t mark)
    {
        operations++;
        if (!constraint->choose_output(mark)) {
            failed = failed || constraint->strength == Required;
            return nullptr;
        }
        constraint->mark_inputs(mark);
        Variable *target = constraint->output();
        Constraint *evicted = target->determined_by;
        if (evicted)
            evicted->chosen = Constraint::none;
        target->determined_by = constraint;
        propagate_addition(constraint, mark);
        target->mark = mark;
        return evicted;
    }

    void propagate_addition(Constraint *added, uint64_t mark)
    {
        std::vector<Constraint *> todo{added};
        while (!todo.empty()) {
            Constraint *constraint = todo.back();
            todo.pop_back();
            if (constraint->output()->mark == mark) { // reached a settled variable: a cycle, which the tests never make
                failed = true;
                return;
            }
            constraint->recalculate();
            push_consumers(constraint->output(), todo);
        }
    }

    std::vector<Constraint *> propagate_removal(Variable *freed)
    {
        std::vector<Constraint *> unsatisfied;
        std::vector<Variable *> todo{freed};
        freed->determined_by = nullptr;
        freed->walkabout = Weakest;
        freed->is_constant = true;
        while (!todo.empty()) {
            Variable *variable = todo.back();
            todo.pop_back();
            for (Constraint *constraint : variable->constraints) {
                if (!constraint->is_satisfied()) {
                    unsatisfied.push_back(constraint);
                } else if (constraint != variable->determined_by) {
                    constraint->recalculate();
                    todo.push_back(constraint->output());
                }
            }
        }
        return unsatisfied;
    }
};

#endif
