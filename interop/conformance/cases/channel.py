"""Class channel (20): open, flow, close, and the states of a channel number."""

from table import Case, channel_error, connection_error, m, publish, reply

OPEN, CLOSE = m("channel.open"), m("channel.close", reply_code=200, reply_text="bye")
DECLARE = m("queue.declare", queue="{q}", exclusive=True)
MISSING = m("queue.declare", queue="{q}", passive=True)
MISSING_QUEUE = channel_error(404, "NOT_FOUND - no queue '{q}' in vhost '/'", at="queue.declare")
EXPECTED_OPEN = "CHANNEL_ERROR - expected 'channel.open'"


UNIMPLEMENTED = [connection_error(503, "COMMAND_INVALID - unimplemented method")]


def running(at: str):
    return [connection_error(504, "CHANNEL_ERROR - unexpected method in connection state running",
                             at=at)]


def too_many(count: int):
    return [connection_error(530, f"NOT_ALLOWED - number of channels opened ({count}) has reached "
                                  f"the negotiated channel_max ({count})", at=None)]


CASES = [
    Case("channel.open", [OPEN.on(channel=2)], [reply("channel.open-ok")]),
    Case("channel.open-highest-number", [OPEN.on(channel=2047)], [reply("channel.open-ok")]),
    Case("channel.open-numbers-need-not-be-consecutive", given=[OPEN.on(channel=1000)],
         when=[OPEN.on(channel=3)], then=[reply("channel.open-ok")]),
    Case("channel.open-out-of-band-ignored", [m("channel.open", out_of_band="x").on(channel=2)],
         [reply("channel.open-ok")]),
    Case("channel.open-twice", [OPEN],
         [connection_error(504, "CHANNEL_ERROR - second 'channel.open' seen")]),
    Case("channel.open-number-above-channel-max", stage="open", tune={"channel_max": 10},
         when=[OPEN.on(channel=11)], then=[reply("channel.open-ok")],
         note="channel_max limits how many channels are open, not their numbers"),
    Case("channel.open-more-than-channel-max", stage="open", tune={"channel_max": 2},
         given=[OPEN, OPEN.on(channel=2)], when=[OPEN.on(channel=3)],
         then=too_many(2)),
    Case("channel.open-after-close-below-channel-max", stage="open", tune={"channel_max": 1},
         given=[OPEN, CLOSE], when=[OPEN, OPEN.on(channel=2)],
         then=[reply("channel.open-ok").on(channel=1), *too_many(1)]),

    Case("channel.method-before-open", stage="open", when=[DECLARE],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.publish-before-open", stage="open", when=[publish("", "k", b"1")],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.flow-before-open", stage="open", when=[m("channel.flow", active=True)],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.close-before-open", stage="open", when=[CLOSE],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.close-ok-before-open", stage="open", when=[m("channel.close-ok")],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.method-after-close", given=[CLOSE], when=[DECLARE],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.close-ok-unasked", [m("channel.close-ok")],
         UNIMPLEMENTED),
    Case("channel.open-on-channel-0", [OPEN.on(channel=0)], running("channel.open")),
    Case("channel.queue-method-on-channel-0", [DECLARE.on(channel=0)],
         running("queue.declare")),
    Case("channel.publish-on-channel-0", [publish("", "k", b"1").on(channel=0)],
         running("basic.publish")),
    Case("channel.connection-method-on-a-channel", [m("connection.close", reply_code=200)],
         UNIMPLEMENTED),

    Case("channel.close", [CLOSE], [reply("channel.close-ok")]),
    Case("channel.close-twice", given=[CLOSE], when=[CLOSE],
         then=[connection_error(504, EXPECTED_OPEN)]),
    Case("channel.close-and-open-again", given=[CLOSE], when=[OPEN],
         then=[reply("channel.open-ok")]),
    Case("channel.close-cancels-consumers-and-requeues",
         given=[m("queue.declare", queue="{q}"), publish("", "{q}", b"1"),
                m("basic.get", queue="{q}"), CLOSE, OPEN],
         when=[m("queue.declare", queue="{q}")],
         then=[reply("queue.declare-ok", queue="{q}", message_count=1)]),
    Case("channel.close-keeps-exclusive-queues", given=[DECLARE, CLOSE, OPEN], when=[MISSING],
         then=[reply("queue.declare-ok", queue="{q}")]),
    Case("channel.close-forgets-the-last-declared-queue", given=[DECLARE, CLOSE, OPEN],
         when=[m("queue.purge")],
         then=[channel_error(404, "NOT_FOUND - no previously declared queue")]),
    Case("channel.close-forgets-confirm-mode", given=[m("confirm.select"), CLOSE, OPEN],
         when=[m("tx.select")], then=[reply("tx.select-ok")]),

    Case("channel.flow-active", [m("channel.flow", active=True)],
         [reply("channel.flow-ok", active=True)]),
    Case("channel.flow-not-active", [m("channel.flow", active=False)],
         [connection_error(540, "NOT_IMPLEMENTED - active=false")]),
    Case("channel.flow-ok-unasked", [m("channel.flow-ok", active=True)],
         UNIMPLEMENTED),

    Case("channel.error-leaves-other-channels-alone", given=[OPEN.on(channel=2)],
         when=[MISSING, m("queue.declare", queue="{q2}", exclusive=True).on(channel=2)],
         then=[MISSING_QUEUE.on(channel=1), reply("queue.declare-ok", queue="{q2}")]),
    Case("channel.error-crossing-a-close-from-the-client", [MISSING, CLOSE],
         [MISSING_QUEUE, reply("channel.close-ok")]),
    Case("channel.error-then-the-same-number-opens-again", given=[MISSING, MISSING_QUEUE],
         when=[OPEN], then=[reply("channel.open-ok")]),
    Case("channel.error-drops-what-comes-before-close-ok",
         given=[[MISSING, DECLARE, publish("", "{q}", b"1"), m("channel.flow", active=True)],
                MISSING_QUEUE, OPEN],
         when=[MISSING],
         then=[MISSING_QUEUE]),
]
