"""Class access (30), which RabbitMQ answers for old clients."""

from table import Case, m, reply

CASES = [
    Case("access.request",
         [m("access.request", realm="/data", exclusive=True, passive=True, active=True, write=True,
            read=True)], [reply("access.request-ok", ticket=1)]),
    Case("access.request-twice", given=[m("access.request", realm="/data", read=True)],
         when=[m("access.request", realm="/admin")], then=[reply("access.request-ok", ticket=1)]),
    Case("access.request-of-nothing", [m("access.request")],
         [reply("access.request-ok", ticket=1)]),
]
