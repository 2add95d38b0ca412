"""Debian's RabbitMQ as a process of the tests' own: with its own ports, data, cookie and epmd it
neither needs nor disturbs one that the system runs."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from server import free_port

# The package's scripts themselves: those in /usr/sbin change to the user rabbitmq first.
SCRIPTS = pathlib.Path("/usr/lib/rabbitmq/bin")
START_SECONDS = 60
COMMAND_SECONDS = 60


class RabbitMq:
    """Starts in about five seconds."""

    def __init__(self, folder):
        self.port = free_port()
        self.node = f"perf{self.port}@localhost"
        self._folder = folder
        self._epmd = None
        self._server = None
        self._environment = self._make_environment()

    def _make_environment(self):
        folder = self._folder
        plugins = folder / "enabled_plugins"
        plugins.write_text("[rabbitmq_sharding].\n")
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            # Where Erlang keeps the cookie.
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # Without what the system's own RabbitMQ is told.
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            # Derived from the one above, they could be beyond 65535.
            "RABBITMQ_CTL_DIST_PORT_MIN": "35672",
            "RABBITMQ_CTL_DIST_PORT_MAX": "35872",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        }

    def start(self):
        assert SCRIPTS.is_dir(), "Debian's package rabbitmq-server is missing"
        try:
            # Not as a daemon: it can be ended by its id.
            self._epmd = self._spawn([epmd()], "epmd.log")
            self._server = self._spawn([SCRIPTS / "rabbitmq-server"], "server.log")
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def _spawn(self, command, log):
        with (self._folder / log).open("wb") as out:
            return subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_it_answers(self):
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            log = (self._folder / "server.log").read_text(errors="replace")
            assert self._server.poll() is None, f"RabbitMQ ended:\n{log}"
            assert time.monotonic() < deadline, f"RabbitMQ does not answer:\n{log}"
            time.sleep(0.1)

    def _answers(self):
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                probe.sendall(b"AMQP\x00\x00\x09\x01")
                return probe.recv(1) == b"\x01"
        return False

    def stop(self):
        """Its data is not needed any more, so that it need not end in good order."""
        with contextlib.suppress(OSError, ValueError):
            # First the server itself, then the shell that waits for it.
            os.kill(int((self._folder / "pid").read_text()), signal.SIGKILL)
            self._server.wait(timeout=5)
        for process in [self._server, self._epmd]:
            if process and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def ctl(self, *arguments):
        """Runs rabbitmqctl; returns what it printed."""
        result = subprocess.run(
            [SCRIPTS / "rabbitmqctl", "--node", self.node, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout


def epmd():
    """On the PATH, or where Debian's Erlang has it."""
    found = shutil.which("epmd")
    candidates = [pathlib.Path(found)] if found else []
    candidates += sorted(pathlib.Path("/usr/lib/erlang").glob("erts-*/bin/epmd"))
    assert candidates, "Erlang's epmd is missing"
    return candidates[-1]
