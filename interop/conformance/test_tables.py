"""The tables themselves: complete, unambiguous, and written down in expected.md."""

from collections import Counter

from cases import ALL
from make_expected import OUTPUT, render
from methods import AMQP_0_8, AMQP_0_9_1
from table import Expect, Step


def flat(items: list):
    for item in items:
        yield from flat(item) if isinstance(item, list) else [item]


def test_ids_are_unique():
    assert [name for name, count in Counter(case.id for case in ALL).items() if count > 1] == []


def test_every_case_expects_something():
    assert [case.id for case in ALL if not case.then] == []


def test_every_method_is_in_a_case():
    items = [item for case in ALL for item in flat(case.given + case.when + case.then)]
    named = {item.method for item in items if isinstance(item, (Step, Expect))}
    assert AMQP_0_9_1.keys() - named == set()


def test_expected_md_is_up_to_date():
    assert OUTPUT.read_text() == render(), "run `python3 make_expected.py`"


def test_0_8_and_0_9_1_differ_where_the_table_says():
    assert AMQP_0_8["connection.close"].method_id == 60
    assert AMQP_0_9_1["connection.close"].method_id == 50
    assert AMQP_0_8["basic.consume"].fields == AMQP_0_9_1["basic.consume"].fields[:-1]
