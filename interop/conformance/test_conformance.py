"""One test a row of the tables under cases/.

The rows selected start together, on a pool of threads: brokers answer some mistakes only after
seconds, and the rows do not touch one another.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cases import ALL
from runner import Run, reference_version
from table import Case

WORKERS = 16


def expectation(case: Case) -> list:
    """What must come, from Leveret or from the reference broker."""
    if os.environ.get("REFERENCE") != "rabbitmq":
        return case.then
    if case.rabbitmq_3_10 is not None and reference_version().startswith("3.10."):
        return case.rabbitmq_3_10
    return case.then if case.rabbitmq is None else case.rabbitmq


@pytest.fixture(scope="session")
def runs(request):
    """The outcome to come of each selected case, by id."""
    selected = [item.callspec.params["case"] for item in request.session.items
                if item.originalname == "test_case"]
    with ThreadPoolExecutor(WORKERS) as pool:
        yield {case.id: pool.submit(Run(case).execute, expectation(case)) for case in selected}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_case(case: Case, runs: dict[str, Future]):
    runs[case.id].result()
