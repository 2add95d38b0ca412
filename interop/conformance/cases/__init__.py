"""The tables, one module a class of AMQP, and two more for framing and protocol versions."""

from importlib import import_module

MODULES = ("protocol", "connection", "channel", "access", "exchange", "queue", "basic", "confirm",
           "tx", "frames")
TABLES = {name: import_module(f"cases.{name}") for name in MODULES}
ALL = [case for module in TABLES.values() for case in module.CASES]
