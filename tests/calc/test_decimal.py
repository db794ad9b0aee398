# SPDX-License-Identifier: Apache-2.0
"""The exact arithmetic of core against Python's decimal, on random values of
every size and on those around its limits."""
import random
import subprocess
import unittest

from harness import BUILD
from oracle import D, MODES, exact, rounded

TOOL = BUILD / "tests" / "calc" / "decimal_tool"
UNIT = D(1).scaleb(-15)
MOST, LEAST = D(2**127 - 1) * UNIT, D(-2**127) * UNIT


def some_value(rng):
    """(text, value) of a number as JSON writes it."""
    digits = str(rng.randrange(10**rng.randrange(1, 42)))
    point = rng.randrange(len(digits) + 1)
    whole, part = digits[:point] or "0", digits[point:]
    whole = whole.lstrip("0") or "0"
    text = rng.choice(["", "-"]) + whole + (f".{part}" if part else "")
    if rng.random() < .4:
        text += rng.choice("eE") + rng.choice(["", "+", "-"]) \
            + str(rng.randrange(30))
    return text


def near_a_limit(rng):
    edge = rng.choice([MOST, LEAST, D(0), UNIT])
    return exact(edge + rng.randrange(-3, 4) * UNIT)


def shown(value):
    if value % UNIT != 0 or not LEAST <= value <= MOST:
        return "too_big"
    return exact(value if value else D(0))


def expected(op, args):
    first = D(args[0])
    if shown(first) == "too_big":
        return "too_big"
    if op == "add":
        second = D(args[1])
        return "too_big" if shown(second) == "too_big" \
            else shown(first + second)
    if op == "mul":
        return shown(first * int(args[1]))
    if op == "round":
        return rounded(first, int(args[1]), list(MODES)[int(args[2])])
    return shown(first)


def question(rng):
    value = near_a_limit if rng.random() < .3 else some_value
    op = rng.choice(["text", "add", "mul", "round"])
    args = [value(rng)]
    if op == "add":
        args.append((near_a_limit if rng.random() < .3 else some_value)(rng))
    elif op == "mul":
        args.append(str(rng.choice([0, 1, -1, 2, -2**63, 2**63 - 1,
                                    rng.randrange(-2**63, 2**63),
                                    rng.randrange(-10**6, 10**6)])))
    elif op == "round":
        args += [str(rng.randrange(16)), str(rng.randrange(3))]
    return op, args


class Decimal(unittest.TestCase):
    def test_two_hundred_thousand_random_answers_equal_those_of_python(self):
        rng = random.Random(15)
        asked = [question(rng) for _ in range(200000)]
        done = subprocess.run(
            [str(TOOL)], input="".join(f"{op} {' '.join(args)}\n"
                                       for op, args in asked),
            capture_output=True, text=True, timeout=120, check=True)
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(asked))
        for (op, args), answer in zip(asked, answers):
            if answer != expected(op, args):
                self.assertEqual((op, args, answer),
                                 (op, args, expected(op, args)))
        for op in ("text", "add", "mul"):
            seen = {answer == "too_big" for (asked_op, _), answer
                    in zip(asked, answers) if asked_op == op}
            self.assertEqual(seen, {True, False})


if __name__ == "__main__":
    unittest.main()
