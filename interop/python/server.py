"""A Leveret process of a test's own, for tests that kill it. Unlike the other tests' broker, which
run.sh's caller starts, it is started here: $LEVERET_BIN, or what `make build` has built."""

import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).parents[2]
START_SECONDS = 20


def binary():
    path = pathlib.Path(os.environ.get("LEVERET_BIN") or ROOT / "target/release/leveret")
    assert path.is_file(), f"there is no server at {path}; build it with: make build"
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Keeps port, data and log over all of its starts."""

    def __init__(self, folder, *config):
        self.port = free_port()
        self._data = folder / "data"
        self._log = folder / "server.log"
        self._config = folder / "leveret.conf"
        self._config.write_text("\n".join([f"listeners.tcp.1 = 127.0.0.1:{self.port}", *config]) + "\n")
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self._process:
            self._process.kill()
            self._process.wait()

    def start(self):
        # Settings of whoever runs this must not reach the server.
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RABBITMQ_", "LEVERET_"))
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [binary(), "--config", self._config, "--data-dir", self._data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._accepts():
            assert self._process.poll() is None, f"the server ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"the server does not accept:\n{self.log()}"
            time.sleep(0.01)

    def _accepts(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        """SIGKILL: it gets no time for anything."""
        assert self._process.poll() is None, f"the server died by itself:\n{self.log()}"
        self._process.kill()
        self._process.wait()

    def stop(self):
        """SIGTERM; fails unless it ends with status 0."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(timeout=START_SECONDS) == 0, self.log()
        self._process = None

    def log(self):
        return self._log.read_text(errors="replace")
