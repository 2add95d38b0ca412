"""The codec, against octets worked out by hand from the specification."""

import pytest

from methods import AMQP_0_9_1
from wire import Reader, Typed, arguments, frame, parse_arguments, properties, table

EVERY_TYPE = {
    "t": (True, b"t\x01"), "b": (Typed("b", -1), b"b\xff"), "B": (Typed("B", 255), b"B\xff"),
    "s": (Typed("s", -2), b"s\xff\xfe"), "u": (Typed("u", 65535), b"u\xff\xff"),
    "I": (-1, b"I\xff\xff\xff\xff"), "i": (Typed("i", 1), b"i\0\0\0\x01"),
    "l": (2**32, b"l\0\0\0\x01\0\0\0\0"), "f": (Typed("f", 1.0), b"f\x3f\x80\0\0"),
    "d": (1.0, b"d\x3f\xf0\0\0\0\0\0\0"), "D": (Typed("D", (2, 5)), b"D\x02\0\0\0\x05"),
    "S": ("é", b"S\0\0\0\x02\xc3\xa9"), "A": ([1, "a"], b"A\0\0\0\x0bI\0\0\0\x01S\0\0\0\x01a"),
    "T": (Typed("T", 1), b"T\0\0\0\0\0\0\0\x01"), "V": (None, b"V"),
    "F": ({"k": False}, b"F\0\0\0\x04\x01kt\0"), "x": (Typed("x", b"\xff"), b"x\0\0\0\x01\xff"),
}


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_table_value(kind: str):
    value, octets = EVERY_TYPE[kind]
    encoded = (3 + len(octets) - 1).to_bytes(4, "big") + b"\x01n" + octets
    assert table({"n": value}) == encoded
    assert Reader(encoded).table() == {"n": value}


def test_consecutive_bits_share_an_octet():
    declare = AMQP_0_9_1["queue.declare"]
    octets = b"\0\0\x01q\x0a\0\0\0\0"
    assert arguments(declare, {"queue": "q", "durable": True, "auto_delete": True}) == octets
    parsed = parse_arguments(declare, octets)
    assert (parsed["durable"], parsed["exclusive"], parsed["auto_delete"]) == (True, False, True)


def test_property_flags_count_down_from_bit_15():
    assert properties({"content_type": "a", "cluster_id": "b"}) == b"\x80\x04\x01a\x01b"


def test_frame():
    assert frame(1, 2, b"ab") == b"\x01\0\x02\0\0\0\x02ab\xce"
