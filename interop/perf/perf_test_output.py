"""What a script reads from PerfTest's output. The release that the tests run lacks the maximum
among latencies, and has other times in its compact format; later ones are as `leveret perf` is."""

import re

RATE = r"(?:0|\d+|\d\.\d|0\.\d\d)"
LATENCY_NAMES = "min/median/75th/95th/99th(?:/max)?"
LATENCY = r"(?:\d+/){4,5}\d+ (?:µs|ms)"

STARTING = re.compile(
    r"id: (?P<id>\S+), (?P<agent>starting (?:producer|consumer) #\d+(?:, channel #\d+)?)"
)

INTERVAL = re.compile(
    rf"id: (?P<id>\S+), time (?P<time>\d+\.\d{{3}}) s"
    rf"(?:, sent: (?P<sent>{RATE}) msg/s)?"
    rf"(?:, returned: (?P<returned>{RATE}) msg/s)?"
    rf"(?:, confirmed: (?P<confirmed>{RATE}) msg/s, nacked: (?P<nacked>{RATE}) msg/s)?"
    rf"(?:, received: (?P<received>{RATE}) msg/s)?"
    rf"(?:, {LATENCY_NAMES}"
    rf"(?: consumer latency: (?P<consumer_latency>{LATENCY}))?"
    rf"(?:,? confirm latency: (?P<confirm_latency>{LATENCY}))?)?"
)

STOPPED = re.compile(r"test stopped \((?P<reasons>.+)\)")

ID = r"(?P<id>id: \S+, )?"
SUMMARY = [
    re.compile(rf"{ID}sending rate avg: (?P<sent>{RATE}) msg/s"),
    re.compile(rf"{ID}receiving rate avg: (?P<received>{RATE}) msg/s"),
    re.compile(rf"{ID}consumer latency {LATENCY_NAMES} (?P<consumer_latency>{LATENCY})"),
    re.compile(rf"{ID}confirm latency {LATENCY_NAMES} (?P<confirm_latency>{LATENCY})"),
]

COMPACT_TIME = r"(?:\d+\.\d{3}s|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)"
COMPACT_HEAD = re.compile(
    r"time(?P<sent> +sent)?(?P<returned> +returned)?(?P<confirmed> +confirmed +nacked)?"
    r"(?P<received> +received)?(?P<consumer_latency> +consumer latency)?"
    r"(?P<confirm_latency> +confirm latency)?"
)
COMPACT_LINE = re.compile(
    rf"{COMPACT_TIME}(?P<rates>(?: +{RATE} msg/s)*)(?P<latencies>(?: +{LATENCY})*)"
)


def matches(patterns, text):
    """Matches of whole lines, in their order."""
    patterns = patterns if isinstance(patterns, list) else [patterns]
    lines = text.splitlines()
    found = (pattern.fullmatch(line) for line in lines for pattern in patterns)
    return [match for match in found if match]


def fields(match):
    """Which of a pattern's parts a line has."""
    return {name for name, text in match.groupdict().items() if text is not None}


def reasons(text):
    """Why a load stopped."""
    (stopped,) = matches(STOPPED, text)
    return set(stopped["reasons"].split(", "))


def latency(text, name):
    """A latency of the summary: its values, and their unit."""
    (match,) = [match for match in matches(SUMMARY, text) if name in match.groupdict()]
    values, unit = match[name].split(" ")
    return [int(value) for value in values.split("/")], unit
