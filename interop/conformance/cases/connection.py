"""Class connection (10): authentication, tuning, opening, closing."""

from table import (Case, connection_error, heartbeat, m, message, publish, raw, reply, silence,
                   socket_closed)
from wire import frame, table

START_OK = dict(mechanism="PLAIN", locale="en_US", response="\0guest\0guest")
NOTIFY = {"capabilities": {"authentication_failure_close": True}}
TUNE = reply("connection.tune", channel_max=2047, frame_max=131072, heartbeat=60)
TUNE_OK = dict(channel_max=2047, frame_max=131072, heartbeat=0)
OPEN = m("connection.open", virtual_host="/").on(channel=0)
OPENED = reply("connection.open-ok")


def start_ok(**fields):
    return m("connection.start-ok", **START_OK | fields).on(channel=0)


def tune_ok(**fields):
    return m("connection.tune-ok", **TUNE_OK | fields).on(channel=0)


def amqplain(login: str, password: str) -> bytes:
    return table({"LOGIN": login, "PASSWORD": password})[4:]


SILENTLY = [socket_closed()]
LINGERS = "RabbitMQ leaves the socket to the client to close, for up to 30 s"


def in_state(state: str):
    return [connection_error(504, f"CHANNEL_ERROR - unexpected method in connection state "
                                  f"{state}")]


def not_negotiated(field: str, value, than: str, bound: str, limit: int):
    return [connection_error(530, f"NOT_ALLOWED - negotiated {field} = {value} is {than} than the "
                                  f"{bound} allowed value ({limit})", at="connection.tune-ok")]


CASES = [
    # start-ok
    Case("connection.start-ok-plain", stage="started", when=[start_ok()], then=[TUNE]),
    Case("connection.start-ok-amqplain", stage="started",
         when=[start_ok(mechanism="AMQPLAIN", response=amqplain("guest", "guest"))], then=[TUNE]),
    Case("connection.start-ok-capabilities-of-another-type", stage="started",
         when=[start_ok(client_properties={"capabilities": 5})], then=[TUNE]),
    Case("connection.start-ok-any-locale", stage="started", when=[start_ok(locale="xx_YY")],
         then=[TUNE]),
    *[Case(f"connection.start-ok-{name}", stage="started", when=[start_ok(**fields)],
           then=SILENTLY)
      for name, fields in {
          "bad-password": dict(response="\0guest\0wrong"),
          "unknown-user": dict(response="\0nobody\0guest"),
          "amqplain-bad-password": dict(mechanism="AMQPLAIN",
                                        response=amqplain("guest", "wrong")),
      }.items()],
    *[Case(f"connection.start-ok-{name}-with-authentication-failure-close", stage="started",
           when=[start_ok(client_properties=NOTIFY, **fields)],
           then=[connection_error(403, "ACCESS_REFUSED - Login was refused using authentication "
                                       f"mechanism {mechanism}. For details see the broker "
                                       "logfile.", at=None)])
      for name, mechanism, fields in (
          ("bad-password", "PLAIN", dict(response="\0guest\0wrong")),
          ("unknown-user", "PLAIN", dict(response="\0nobody\0guest")),
          ("amqplain-bad-password", "AMQPLAIN",
           dict(mechanism="AMQPLAIN", response=amqplain("guest", "wrong"))),
      )],
    *[Case(f"connection.start-ok-malformed-{name}", stage="started",
           when=[start_ok(client_properties=NOTIFY, **fields)], then=SILENTLY)
      for name, fields in {
          "plain": dict(response="guest"),
          "plain-with-authorization-identity": dict(response="other\0guest\0guest"),
          "plain-without-password": dict(response="\0guest"),
          "plain-empty": dict(response=""),
          "amqplain": dict(mechanism="AMQPLAIN", response="\x05LOG"),
          "amqplain-empty": dict(mechanism="AMQPLAIN", response=""),
      }.items()],
    Case("connection.start-ok-unknown-mechanism", stage="started",
         when=[start_ok(mechanism="NO-SUCH")], then=SILENTLY),
    Case("connection.start-ok-unknown-mechanism-with-authentication-failure-close",
         stage="started", when=[start_ok(mechanism="NO-SUCH", client_properties=NOTIFY)],
         then=SILENTLY),
    Case("connection.start-ok-mechanism-external", stage="started",
         when=[start_ok(mechanism="EXTERNAL", client_properties=NOTIFY)], then=SILENTLY),
    Case("connection.start-ok-twice", stage="started", given=[start_ok(), TUNE],
         when=[start_ok()], then=SILENTLY),
    Case("connection.secure-ok-unasked", stage="tuned",
         when=[m("connection.secure-ok", response="x").on(channel=0)], then=SILENTLY),
    Case("connection.open-before-start-ok", stage="started", when=[OPEN], then=SILENTLY),
    Case("connection.close-before-start-ok", stage="started",
         when=[m("connection.close", reply_code=200).on(channel=0)], then=SILENTLY),
    Case("connection.tune-ok-before-start-ok", stage="started", when=[tune_ok()], then=SILENTLY),
    Case("connection.channel-open-before-start-ok", stage="started", when=[m("channel.open")],
         then=SILENTLY),

    # tune-ok
    Case("connection.tune-ok", stage="tuned", when=[tune_ok(), OPEN], then=[OPENED]),
    # 0 sets no limit of the client's own (0-9-1, connection.tune-ok): the server's stays.
    Case("connection.tune-ok-no-limits", stage="tuned",
         when=[tune_ok(channel_max=0, frame_max=0), OPEN],
         then=[OPENED], rabbitmq=SILENTLY),
    Case("connection.tune-ok-frame-max-0", stage="tuned",
         when=[tune_ok(frame_max=0), OPEN],
         then=[OPENED], rabbitmq=SILENTLY),
    Case("connection.tune-ok-channel-max-0", stage="tuned",
         when=[tune_ok(channel_max=0), OPEN],
         then=[OPENED], rabbitmq=SILENTLY),
    Case("connection.tune-ok-frame-max-4096", stage="tuned",
         when=[tune_ok(frame_max=4096), OPEN], then=[OPENED]),
    Case("connection.tune-ok-frame-max-4095", stage="tuned",
         when=[tune_ok(frame_max=4095)],
         then=not_negotiated("frame_max", 4095, "lower", "minimum", 4096),
         rabbitmq=SILENTLY),
    Case("connection.tune-ok-frame-max-above", stage="tuned",
         when=[tune_ok(frame_max=131073)],
         then=not_negotiated("frame_max", 131073, "higher", "maximum", 131072),
         rabbitmq=SILENTLY),
    Case("connection.tune-ok-channel-max-above", stage="tuned",
         when=[tune_ok(channel_max=2048)],
         then=not_negotiated("channel_max", 2048, "higher", "maximum", 2047),
         rabbitmq=SILENTLY),
    Case("connection.tune-ok-channel-max-1", stage="tuned",
         when=[tune_ok(channel_max=1), OPEN], then=[OPENED]),
    Case("connection.tune-ok-heartbeat-above", stage="tuned",
         when=[tune_ok(heartbeat=600), OPEN], then=[OPENED]),
    Case("connection.tune-ok-twice", stage="tuned", given=[[tune_ok()]], when=[tune_ok()],
         then=in_state("opening")),
    Case("connection.open-before-tune-ok", stage="tuned", when=[OPEN], then=SILENTLY),
    Case("connection.close-before-tune-ok", stage="tuned",
         when=[m("connection.close", reply_code=200).on(channel=0)], then=SILENTLY),
    Case("connection.channel-open-before-open", stage="opening", when=[m("channel.open")],
         then=[connection_error(505, "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>",
                                at=None)]),
    Case("connection.close-before-open", stage="opening",
         when=[m("connection.close", reply_code=200).on(channel=0)], then=in_state("opening")),

    # open
    Case("connection.open", stage="opening", when=[OPEN], then=[OPENED]),
    Case("connection.open-insist", stage="opening",
         when=[m("connection.open", virtual_host="/", capabilities="x", insist=True).on(channel=0)],
         then=[OPENED]),
    Case("connection.open-unknown-vhost", stage="opening",
         when=[m("connection.open", virtual_host="no-such").on(channel=0)],
         then=[connection_error(530, "NOT_ALLOWED - vhost no-such not found")]),
    Case("connection.open-empty-vhost", stage="opening",
         when=[m("connection.open", virtual_host="").on(channel=0)],
         then=[connection_error(530, "NOT_ALLOWED - vhost  not found")]),
    Case("connection.open-twice", stage="open", when=[OPEN], then=in_state("running")),
    Case("connection.start-ok-when-open", stage="open", when=[start_ok()],
         then=in_state("running")),
    Case("connection.tune-ok-when-open", stage="open", when=[tune_ok()], then=in_state("running")),

    *[Case(f"connection.{name}-from-a-client", stage="open",
           when=[m(f"connection.{name}").on(channel=0)], then=in_state("running"))
      for name in ("start", "secure", "tune", "open-ok", "update-secret-ok")],

    # close
    Case("connection.close", stage="open",
         when=[m("connection.close", reply_code=200, reply_text="bye").on(channel=0)],
         then=[reply("connection.close-ok"), socket_closed()],
         rabbitmq=[reply("connection.close-ok")], note=LINGERS),
    Case("connection.close-with-channels", given=[m("channel.open").on(channel=2)],
         when=[m("connection.close", reply_code=200, reply_text="bye").on(channel=0)],
         then=[reply("connection.close-ok"), socket_closed()],
         rabbitmq=[reply("connection.close-ok")], note=LINGERS),
    Case("connection.close-crossing-one-from-the-server",
         given=[m("channel.open"),
                reply("connection.close", reply_code=504, class_id=20, method_id=10,
                      reply_text="CHANNEL_ERROR - second 'channel.open' seen")],
         when=[m("connection.close", reply_code=200).on(channel=0)],
         then=[reply("connection.close-ok")]),
    Case("connection.close-drops-what-comes-after",
         given=[m("queue.declare", queue="{q}"),
                [m("connection.close", reply_code=200).on(channel=0),
                 publish("", "{q}", b"late")],
                reply("connection.close-ok")],
         when=[m("queue.declare", queue="{q}").on(conn="b")],
         then=[reply("queue.declare-ok", queue="{q}")]),
    Case("connection.close-reply-text-need-not-be-known", stage="open",
         when=[m("connection.close", reply_code=0, reply_text="", class_id=1,
                 method_id=2).on(channel=0)],
         then=[reply("connection.close-ok"), socket_closed()],
         rabbitmq=[reply("connection.close-ok")], note=LINGERS),
    Case("connection.close-ok-unasked", stage="open",
         when=[m("connection.close-ok").on(channel=0)], then=in_state("running")),
    Case("connection.close-deletes-exclusive-queues",
         given=[m("queue.declare", queue="{q}", exclusive=True).on(conn="b"),
                m("connection.close", reply_code=200).on(channel=0, conn="b")],
         when=[m("queue.declare", queue="{q}")], then=[reply("queue.declare-ok", queue="{q}")]),

    # blocked, unblocked, update-secret
    Case("connection.blocked-from-a-client", stage="open",
         when=[m("connection.blocked", reason="x").on(channel=0)], then=in_state("running")),
    Case("connection.unblocked-from-a-client", stage="open",
         when=[m("connection.unblocked").on(channel=0)], then=in_state("running")),
    Case("connection.update-secret", stage="open",
         when=[m("connection.update-secret", new_secret="guest", reason="new").on(channel=0)],
         then=[reply("connection.update-secret-ok")]),
    Case("connection.update-secret-before-open", stage="opening",
         when=[m("connection.update-secret", new_secret="guest", reason="new").on(channel=0)],
         then=in_state("opening")),

    # heartbeats
    Case("connection.heartbeat-from-a-client", stage="open",
         when=[raw(frame(8, 0, b""), "a heartbeat frame"), m("channel.open")],
         then=[reply("channel.open-ok")]),
    Case("connection.heartbeats-are-sent", stage="open", tune={"heartbeat": 1},
         when=[raw(frame(8, 0, b""), "a heartbeat frame").on(channel=0)], then=[heartbeat()]),
    Case("connection.heartbeats-that-stay-away-close-the-socket", stage="open",
         tune={"heartbeat": 1}, when=[raw(b"", "nothing at all").on(channel=0)],
         then=[heartbeat(), socket_closed()]),
    Case("connection.heartbeat-0-means-none", stage="open", tune={"heartbeat": 0},
         when=[raw(b"", "nothing at all").on(channel=0)], then=[silence(2.5)]),

    # frames before the tuning is done are limited to 4096 octets
    Case("connection.start-ok-frame-of-4096-octets", stage="started",
         when=[start_ok(client_properties={"x": "y" * 4020})], then=[TUNE]),
    Case("connection.start-ok-frame-of-over-4096-octets", stage="started",
         when=[start_ok(client_properties={"x": "y" * 4100})], then=SILENTLY),
    Case("connection.open-frame-max-agreed-is-kept-to", tune={"frame_max": 4096},
         given=[m("queue.declare", queue="{q}", exclusive=True),
                publish("", "{q}", b"x" * 10000)],
         when=[m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"x" * 10000, {}, delivery_tag=1, routing_key="{q}")],
         note="no frame that the server sends is larger than the frame_max agreed, here and "
              "in every other case"),
]
