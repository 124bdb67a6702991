"""Tests that each method of the contract has a row in the oracle's table: its programs, or the reason for none."""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / folder) for folder in ("clients/python", "tests/support"))]

from refusals import check_refusal  # noqa: F401,E402
from programs_reads import COMMANDS, METHODS, WEIGHTS, all_programs  # noqa: E402
from hashing import leaf_hash  # noqa: E402
from published_log import consistency, inclusion, root_of  # noqa: E402
from statements import HOME, SAY_NOTHING, STATEMENTS  # noqa: E402
from statements_proofs import consistency_roots, inclusion_root  # noqa: E402


def methods_of_the_contract() -> set[str]:
    return {path.stem for path in (HERE.parents[1] / "schema" / "rpc").glob("*.json")} - {"common"}


class Table(unittest.TestCase):
    def test_every_method_has_programs_or_a_reason(self) -> None:
        self.assertEqual(sorted(METHODS), sorted(methods_of_the_contract()))
        for method, row in METHODS.items():
            self.assertTrue(row, f"{method}: neither programs nor a reason")
            self.assertTrue(not isinstance(row, str) or len(row) > 20, f"{method}: {row} is no reason")

    def test_what_is_said_of_methods_is_said_of_methods_that_are_there(self) -> None:
        for method in (*STATEMENTS, *HOME):
            self.assertIn(method, {**METHODS, **COMMANDS})

    def test_every_reply_is_judged_or_says_nothing(self) -> None:
        driven = {method for method, row in METHODS.items() if not isinstance(row, str)} | set(COMMANDS)
        self.assertEqual(sorted(driven - set(STATEMENTS)), sorted(SAY_NOTHING))

    def test_weights_are_of_programs(self) -> None:
        self.assertLessEqual(set(WEIGHTS), {program.__name__ for program in all_programs()})


class Proofs(unittest.TestCase):
    """Tests of the judge's proof checks, whose algorithm differs from that of the proofs' generation."""

    def test_inclusion_and_growth(self) -> None:
        for size in range(1, 20):
            leaves = [leaf_hash(bytes([number])) for number in range(size)]
            for index in range(size):
                path = inclusion(leaves, index)
                self.assertEqual(inclusion_root(leaves[index], index, size, path), root_of(leaves))
                self.assertNotEqual(inclusion_root(leaves[index] + b"x", index, size, path), root_of(leaves))
                self.assertNotEqual(inclusion_root(leaves[index], index, size, [*path, leaves[0]]), root_of(leaves))
            for first in range(1, size):
                whole = [root_of(leaves[:first])] if first & (first - 1) == 0 else []
                path = whole + consistency(leaves, first)
                self.assertEqual(consistency_roots(first, size, path), (root_of(leaves[:first]), root_of(leaves)))
                self.assertNotEqual(consistency_roots(first, size, [path[0] + b"x", *path[1:]]), (root_of(leaves[:first]), root_of(leaves)))


if __name__ == "__main__":
    unittest.main()
