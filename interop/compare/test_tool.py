"""The tool itself: what it calls a difference, and what it takes for the same."""

import time

from compare import Record, report
from record import Recorder
from scenario import Scenario, declare, died, get, take
from wire import Received, Typed

AS_DUE = died(get(), ("expired", "{q}", ""))
DUE = ['        x-last-death-exchange = ""', '        x-last-death-queue = "{q}"',
       '        x-last-death-reason = "expired"']


def compared(steps, old, new):
    return report(Scenario("s", steps), Record([*old, []], False), Record([*new, []], False))


def test_equal_records_are_no_report():
    assert compared([get()], [["< a"]], [["< a"]]) == ""


def test_a_difference_is_shown_with_its_step():
    told = compared([declare(), get()], [["same"], ["< a", "b"]], [["same"], ["< a", "c"]])
    assert "> basic.get" in told and "- b" in told and "+ c" in told
    assert "- same" not in told


def test_a_difference_that_is_due_is_no_report():
    assert compared([AS_DUE], [["< a"]], [["< a", *DUE]]) == ""


def test_a_difference_that_is_due_and_missing_is_reported_with_its_reason():
    told = compared([AS_DUE], [["< a"]], [["< a"]])
    assert "# due was another difference: RabbitMQ 3.13" in told


def test_another_difference_than_the_one_due_is_reported():
    assert "+ more" in compared([AS_DUE], [["< a"]], [["< a", *DUE, "more"]])


def test_a_broker_that_gave_up_differs():
    assert "+ ! nothing came" in compared([get()], [["< a"]], [["! nothing came"]])


def test_names_and_what_is_made_up_are_told_by_kind():
    recorder = Recorder({"q": "s.q", "q1": "s.q1"})
    made_up = "amq.gen-" + "x" * 22
    assert recorder.text(f"s.q1 s.q {made_up}") == "{q1} {q} amq.gen-*"
    assert recorder.text("127.0.0.1:5 -> 127.0.0.1:6 (1)") == (
        "127.0.0.1:PORT -> 127.0.0.1:PORT (1)")


def test_a_time_is_one_only_near_now_and_only_as_a_timestamp():
    recorder, now = Recorder({}), int(time.time())
    assert recorder.value(Typed("T", now)) == "timestamp now"
    assert recorder.value(Typed("T", 5)) == "timestamp 5"
    assert recorder.value(Typed("l", now)) == f"long {now}"
    assert recorder.value(now * 1000) == "long now in ms"


def test_types_on_the_wire_are_told():
    got = Received(1, "basic.get-ok", {"delivery_tag": 1}, {"headers": {
        "b": [1, Typed("l", 1)], "a": {"c": True, "d": {}}}}, b"body")
    assert Recorder({}).received(got) == [
        "< basic.get-ok delivery_tag=1", '    body "body"', "    headers",
        "        a.c = true", "        a.d = {}", "        b[0] = int 1", "        b[1] = long 1"]


def test_steps_keep_their_difference_on_another_channel():
    assert take().differs("x", "- a").on(2, "b").difference.lines == ("- a",)
