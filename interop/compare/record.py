"""Turns what came from a broker into lines that a reader, and a diff, can follow.

What varies from run to run is replaced by its kind: a time close to now is `now`, a name that the
broker made up is `amq.gen-*`, and so on. The wire type of each value in a table is kept.
"""

import re
import time

from wire import Received, Typed

KINDS = {"b": "byte", "B": "ubyte", "s": "short", "u": "ushort", "I": "int", "i": "uint",
         "l": "long", "L": "ulong", "T": "timestamp", "f": "float", "d": "double", "x": "bytes",
         "D": "decimal", "S": "text"}
NOW = 3600
NORMAL = [
    (re.compile(r"\bamq\.gen-[\w-]{22}"), "amq.gen-*"),
    (re.compile(r"\bamq\.ctag-[\w-]{22}"), "amq.ctag-*"),
    (re.compile(r"\bamq\.rabbitmq\.reply-to\.[\w.+/=-]{20,}"), "amq.rabbitmq.reply-to.*"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    # Which of the two depends on what the connection hears first.
    (re.compile(r"\bis (down|deleted)$"), "is down or deleted"),
    (re.compile(r"<[\w@.-]+\.\d+\.\d+\.\d+>"), "<PID>"),
    (re.compile(r"<\d+\.\d+\.\d+>"), "<PID>"),
]
INDENT = "    "


class Recorder:
    """Knows the names of one scenario."""

    def __init__(self, names: dict[str, str]):
        self._names = names
        # Tables have no order; this shows the one in which they came.
        self.as_it_came = False

    def text(self, value: str) -> str:
        for pattern, kind in NORMAL:
            value = pattern.sub(kind, value)
        for token, name in sorted(self._names.items(), key=lambda item: -len(item[1])):
            value = value.replace(name, "{" + token + "}")
        return value.replace("\n", "\\n")

    def value(self, value) -> str:
        match value:
            case None:
                return "void"
            case bool():
                return str(value).lower()
            case str():
                return f'"{self.text(value)}"'
            case float():
                return f"double {value}"
            case int() if abs(value / 1000 - time.time()) < NOW:
                return "long now in ms"
            case int():
                return f"{'int' if -2**31 <= value < 2**31 else 'long'} {value}"
            case bytes():
                return f'"{self.text(value.decode("utf-8", "backslashreplace"))}"'
            case Typed("T", seconds):
                return f"timestamp {moment(seconds)}"
            case Typed(kind, raw):
                return f"{KINDS[kind]} {raw}"
            case []:
                return "[]"
            case dict():
                return "{}"
        raise TypeError(f"no text for {value!r}")

    def lines(self, path: str, value) -> list[str]:
        """One line for each value inside."""
        if isinstance(value, dict) and value:
            entries = value.items() if self.as_it_came else sorted(value.items())
            return [line for key, inner in entries
                    for line in self.lines(f"{path}.{self.text(key)}" if path else self.text(key),
                                           inner)]
        if isinstance(value, list) and value:
            return [line for i, inner in enumerate(value)
                    for line in self.lines(f"{path}[{i}]", inner)]
        if path in ("port", "peer_port") and isinstance(value, (int, Typed)):
            return [f"{path} = PORT"]
        return [f"{path} = {self.value(value)}"]

    def received(self, got: Received) -> list[str]:
        """A method, its arguments in one line, its content below."""
        tables = {name: value for name, value in got.fields.items() if isinstance(value, dict)}
        fields = [f"{name}={self.plain(value)}" for name, value in got.fields.items()
                  if name not in tables]
        out = [" ".join(["<", got.name, *fields])]
        if got.name in ("basic.deliver", "basic.get-ok", "basic.return"):
            out.append(f"{INDENT}body {self.value(got.body)}")
            for name, value in got.properties.items():
                if name == "headers":
                    out.append(f"{INDENT}headers" + (" {}" if value == {} else ""))
                    if value:
                        out += [INDENT * 2 + line for line in self.lines("", value)]
                else:
                    shown = moment(value) if name == "timestamp" else self.plain(value)
                    out.append(f"{INDENT}{name} {shown}")
        return out

    def plain(self, value) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f"'{self.text(value)}'" if isinstance(value, str) else str(value)


def moment(seconds: int) -> str:
    return "now" if abs(seconds - time.time()) < NOW else str(seconds)


def shown(step, fill=lambda value: value) -> str:
    """The step in a line, for the reader of a record."""
    where = "" if (step.channel, step.conn) == (1, "a") or step.conn == "watch" else (
        f" [{step.conn}{step.channel}]")
    only = f" (on {step.only} only)" if step.only else ""
    fields = " ".join(f"{name}={value!r}" for name, value in step.fields.items()
                      if value not in ("", {}, False))
    match step.kind:
        case "method":
            text = f"{step.method} {fields}"
            if step.properties is not None:
                body = step.body if len(step.body) < 60 else f"{len(step.body)} octets"
                text += f" {body!r}" + "".join(f" {k}={v!r}" for k, v in step.properties.items())
        case "arrive":
            text = f"await {step.count} {step.method}"
        case "confirms":
            text = f"await {step.count} confirms"
        case "holds":
            text = f"await {step.count} messages in {step.fields['queue']}"
        case "take":
            text = f"take {step.count} from {step.fields['queue']}" + (
                "" if step.fields["no_ack"] else ", to be acknowledged")
        case "spread":
            text = f"await {step.count} messages in {', '.join(step.fields['queues'])}"
        case "gone":
            text = f"await the end of {step.fields['queue']}"
        case "silence" | "pause":
            text = f"{step.kind} {step.seconds} s"
        case "ctl":
            text = "ctl " + " ".join(step.words)
        case kind:
            text = kind
    return f"> {text.strip()}{where}{only}"
