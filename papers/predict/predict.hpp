// SPDX-License-Identifier: MIT
//
// Why: the thesis's predictor class (chapter 11).  One object stands for one function; calling the object is calling the
// function, with the same arguments and the same result:
//
//     double gamma_p(double a, double x);                 // slow; depends on nothing else; changes nothing
//     static sutler::predictor predicted(gamma_p);
//     ... predicted(a, x) ...                             // where gamma_p(a, x) was
//
// Everything else is in predict.h.  Arguments and results are plain values: numbers, enums, structs without pointers to
// what may change; at most seven words of arguments (each argument begins a word) and eight of result.  An object lives as
// long as anyone calls it, best for ever; a process may have 64.
#ifndef PREDICT_PREDICT_HPP
#define PREDICT_PREDICT_HPP

#include "predict.h"

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sutler {

namespace predicted {

template <typename Value> constexpr size_t words = (sizeof(Value) + 7) / 8;

template <typename Value> constexpr predict_kind kind()
{
    if (std::is_same_v<Value, double>)
        return PREDICT_DOUBLE;
    if (std::is_same_v<Value, float>)
        return PREDICT_FLOAT;
    return (std::is_integral_v<Value> || std::is_enum_v<Value>) && sizeof(Value) <= 8 ? PREDICT_INTEGER : PREDICT_OPAQUE;
}

// Integers are widened, so that adding to the word is adding to the number.
template <typename Value> void pack(uint64_t *to, Value value)
{
    if constexpr ((std::is_integral_v<Value> || std::is_enum_v<Value>) && sizeof(Value) <= 8)
        *to = static_cast<uint64_t>(value);
    else
        std::memcpy(to, &value, sizeof value);
}

template <typename Value> Value unpack(const uint64_t *from)
{
    if constexpr ((std::is_integral_v<Value> || std::is_enum_v<Value>) && sizeof(Value) <= 8) {
        return static_cast<Value>(*from);
    } else {
        Value value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }
}

} // namespace predicted

template <typename Signature> class predictor;

template <typename Result, typename... Arguments> class predictor<Result(Arguments...)> {
    static constexpr size_t argument_words = (predicted::words<Arguments> + ... + 0);
    static_assert(((std::is_trivially_copyable_v<Arguments> && !std::is_reference_v<Arguments>)&&...),
                  "arguments are plain values");
    static_assert(std::is_trivially_copyable_v<Result> && std::is_default_constructible_v<Result>, "results are plain values");
    static_assert(argument_words >= 1 && argument_words <= PREDICT_ARGUMENTS, "one to seven words of arguments");
    static_assert(predicted::words<Result> <= PREDICT_RESULTS, "at most eight words of result");

public:
    using original = Result (*)(Arguments...);

    explicit predictor(original function, const predict_options &options = predict_options_from_environment(),
                       const char *name = "function")
        : function_(function)
    {
        predict_kind kinds[argument_words];
        size_t at = 0;
        ((fill(kinds, at, predicted::kind<Arguments>(), predicted::words<Arguments>)), ...);
        predict_open(&core_, name, compute, this, argument_words, predicted::words<Result>, kinds, &options);
    }

    ~predictor() { predict_close(&core_); }
    predictor(const predictor &) = delete;
    predictor &operator=(const predictor &) = delete;

    Result operator()(Arguments... arguments)
    {
        return __builtin_expect(__atomic_load_n(&core_.x_off, __ATOMIC_RELAXED) != 0, 1) ? function_(arguments...)
                                                                                         : ask(arguments...);
    }

    predict_counts counts()
    {
        predict_counts counts;
        predict_count(&core_, &counts);
        return counts;
    }

    predict_function *core() { return &core_; }

private:
    __attribute__((noinline)) Result ask(Arguments... arguments)
    {
        predict_call call;
        pack(call.key, arguments...);
        if (predict_ask(&core_, &call))
            return predicted::unpack<Result>(call.result);
        Result result = function_(arguments...);
        predicted::pack<Result>(call.result, result);
        predict_done(&core_, &call);
        return result;
    }

    static void fill(predict_kind *kinds, size_t &at, predict_kind kind, size_t words)
    {
        for (size_t i = 0; i < words; i++)
            kinds[at++] = kind;
    }

    static void pack(uint64_t *key, Arguments... arguments)
    {
        std::memset(key, 0, argument_words * sizeof *key);
        ((predicted::pack<Arguments>(key, arguments), key += predicted::words<Arguments>), ...);
    }

    template <size_t... At> Result apply(const uint64_t *key, std::index_sequence<At...>)
    {
        constexpr size_t words[] = {predicted::words<Arguments>...};
        size_t begins[sizeof...(Arguments)] = {};
        for (size_t i = 1; i < sizeof...(Arguments); i++)
            begins[i] = begins[i - 1] + words[i - 1];
        return function_(predicted::unpack<Arguments>(key + begins[At])...);
    }

    static bool compute(void *self, const uint64_t *key, uint64_t *result) noexcept
    {
        try {
            predicted::pack<Result>(
                result, static_cast<predictor *>(self)->apply(key, std::index_sequence_for<Arguments...>{}));
            return true;
        } catch (...) { // the program meets it when it makes this call itself
            return false;
        }
    }

    original function_;
    predict_function core_;
};

template <typename Result, typename... Arguments, typename... More>
predictor(Result (*)(Arguments...), More...) -> predictor<Result(Arguments...)>;

} // namespace sutler

#endif
