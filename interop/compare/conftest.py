"""Options of the suite, and the records that its tests look at."""

import signal

import pytest

import compare


def pytest_addoption(parser):
    group = parser.getgroup("compare")
    group.addoption("--files", default="", help="the files of scenarios, separated by commas; all")
    group.addoption("--only", choices=list(compare.BROKERS),
                    help="play on this broker alone, and print its records")
    group.addoption("--times", type=int, default=1,
                    help="with --only: so many times, each on a fresh broker; all must be equal")
    group.addoption("--as-it-came", action="store_true",
                    help="show the entries of tables in the order in which they came")


def pytest_configure():
    # Whoever ends the suite wants the brokers that it started to end, too.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=1))


def pytest_generate_tests(metafunc):
    if "id" in metafunc.fixturenames:
        files = metafunc.config.getoption("--files")
        metafunc.parametrize("id", compare.load(files.split(",") if files else []))


@pytest.fixture(scope="session")
def rounds(request) -> list[dict]:
    """The records of the selected scenarios, once for each time that they are played."""
    option = request.config.getoption
    selected = {item.callspec.params["id"] for item in request.session.items
                if item.originalname == "test_scenario"}
    scenarios = {id: scenario for id, scenario in compare.load().items() if id in selected}
    kinds = [option("--only")] if option("--only") else list(compare.BROKERS)
    rounds = []
    for _ in range(option("--times") if option("--only") else 1):
        with compare.started(kinds) as brokers:
            rounds.append(compare.play(scenarios, brokers, option("--as-it-came")))
    return rounds
