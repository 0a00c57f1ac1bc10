# SPDX-License-Identifier: MIT
#
# Why: MMT's gawk row runs "a large script": an interpreter's heap is strings, array cells and call frames, most of them
# alive for a moment only.  This one needs no input: it makes a text of its own and then does with it what awk scripts
# do.  Numbers stay below 2^53, and the order in which arrays are walked never matters, so the line it prints is the
# same under every allocator (and every awk).
#
#     gawk -v lines=4000 -f large.awk

function next_random(limit)
{
    seed = (seed * 16807) % 2147483647
    return seed % limit
}

# Adds to a checksum that stays an exact integer.
function note(value)
{
    checksum = (checksum * 31 + value) % 1000000007
}

function note_text(text,    i)
{
    note(length(text))
    for (i = 1; i <= length(text); i += 7)
        note(index(alphabet, substr(text, i, 1)))
}

function make_word(    word, syllables)
{
    word = ""
    for (syllables = 1 + next_random(3); syllables > 0; syllables--)
        word = word consonant[1 + next_random(consonants)] vowel[1 + next_random(vowels)]
    return word
}

function make_line(    line, words)
{
    line = ""
    for (words = 4 + next_random(12); words > 0; words--)
        line = line (line == "" ? "" : " ") dictionary[1 + next_random(dictionary_size)]
    return line
}

# How often each word occurs, through split and through an associative array.
function count_words(    i, j, fields, n)
{
    for (i = 1; i <= lines; i++) {
        n = split(text[i], fields, " ")
        for (j = 1; j <= n; j++) {
            frequency[fields[j]]++
            follows[fields[j], j < n ? fields[j + 1] : "."]++
        }
    }
}

function swap(list, i, j,    held)
{
    held = list[i]
    list[i] = list[j]
    list[j] = held
}

# By falling frequency, then by name.
function comes_before(a, b)
{
    if (frequency[a] != frequency[b])
        return frequency[a] > frequency[b]
    return a < b
}

function sort_words(list, low, high,    i, last)
{
    if (low >= high)
        return
    swap(list, low, int((low + high) / 2))
    last = low
    for (i = low + 1; i <= high; i++)
        if (comes_before(list[i], list[low]))
            swap(list, ++last, i)
    swap(list, low, last)
    sort_words(list, low, last - 1)
    sort_words(list, last + 1, high)
}

function report_words(    word, n, list, i)
{
    n = 0
    for (word in frequency)
        list[++n] = word
    sort_words(list, 1, n)
    for (i = 1; i <= n; i++) {
        note(frequency[list[i]])
        note_text(sprintf("%-20s|%6d", list[i], frequency[list[i]]))
    }
    note(n)
}

function spaces(count,    blank)
{
    blank = ""
    while (count-- > 0)
        blank = blank " "
    return blank
}

# Fills a line to `width` by widening its gaps from the left.
function justify(line, width,    fields, n, i, gaps, missing, result)
{
    n = split(line, fields, " ")
    gaps = n - 1
    missing = width - length(line)
    if (gaps < 1 || missing < 0)
        return line
    result = fields[1]
    for (i = 2; i <= n; i++)
        result = result spaces(1 + int(missing / gaps) + (i - 1 <= missing % gaps)) fields[i]
    return result
}

function fill_paragraphs(width,    i, j, n, fields, line)
{
    line = ""
    for (i = 1; i <= lines; i++) {
        n = split(text[i], fields, " ")
        for (j = 1; j <= n; j++) {
            if (length(line) + length(fields[j]) + 1 > width) {
                note_text(justify(line, width))
                line = fields[j]
            } else {
                line = line (line == "" ? "" : " ") fields[j]
            }
        }
    }
    note_text(line)
}

# Regular expressions at work on every line.
function edit_lines(    i, line)
{
    for (i = 1; i <= lines; i++) {
        line = text[i]
        note(gsub(/[aeiou]+/, "<&>", line))
        note(gsub(/ba|ko|ti/, "#", line))
        if (match(line, /#[^ ]*#/))
            note(RSTART * 100 + RLENGTH)
        note_text(toupper(substr(line, 1, 30)))
    }
}

# Builds an arithmetic expression as a string, then parses it again.
function make_expression(depth)
{
    if (depth == 0)
        return 1 + next_random(9)
    return "(" make_expression(depth - 1) substr("+-*", 1 + next_random(3), 1) make_expression(depth - 1) ")"
}

function parse(    value, operator)
{
    if (substr(expression, 1, 1) != "(") {
        value = substr(expression, 1, 1) + 0
        expression = substr(expression, 2)
        return value
    }
    expression = substr(expression, 2)
    value = parse()
    operator = substr(expression, 1, 1)
    expression = substr(expression, 2)
    if (operator == "+")
        value += parse()
    else if (operator == "-")
        value -= parse()
    else
        value *= parse()
    expression = substr(expression, 2)
    return value % 10007
}

function evaluate_expressions(count,    value)
{
    while (count-- > 0) {
        expression = make_expression(6)
        value = parse()
        note(value < 0 ? value + 10007 : value)
    }
}

BEGIN {
    if (!lines)
        lines = 4000
    seed = 20101115
    checksum = 1
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ <>#|0123456789"
    consonants = split("b d f g h k l m n p r s t v w z", consonant, " ")
    vowels = split("a e i o u ai ou ee", vowel, " ")
    dictionary_size = 2000
    for (i = 1; i <= dictionary_size; i++)
        dictionary[i] = make_word()
    for (i = 1; i <= lines; i++)
        text[i] = make_line()
    count_words()
    report_words()
    fill_paragraphs(72)
    edit_lines()
    evaluate_expressions(int(lines / 20))
    pairs = 0
    for (pair in follows)
        pairs++
    note(pairs)
    printf "lines=%d pairs=%d checksum=%d\n", lines, pairs, checksum
}
