"""One test a scenario: both brokers, or several rounds of one, let the client see the same."""

import difflib

import pytest

import compare


def test_scenario(id: str, rounds: list[dict], request, capsys):
    scenario, only = compare.load()[id], request.config.getoption("--only")
    if not only:
        both = rounds[0][id]
        if found := compare.report(scenario, both["rabbitmq"], both["leveret"]):
            pytest.fail(f"{id}\n{found}", pytrace=False)
        return
    told = [compare.transcript(scenario, records[id][only]) for records in rounds]
    with capsys.disabled():
        print(f"\n== {id}\n{told[0]}")
    for other in told[1:]:
        if other != told[0]:
            diff = difflib.unified_diff(told[0].splitlines(), other.splitlines(), lineterm="")
            pytest.fail("\n".join([id, *diff]), pytrace=False)
    if any(records[id][only].vain for records in rounds):
        pytest.fail(f"{id}: something was waited for in vain", pytrace=False)
