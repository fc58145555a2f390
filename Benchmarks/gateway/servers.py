"""The origin (nginx), the gateways, and a relay that counts what a gateway sends."""
import select
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import shared
from shared import REEL, free_port


class Origin(shared.Nginx):
    """nginx over the folder of the presentations, while the `with` lasts."""

    def __init__(self, root, folder):
        port = free_port()
        super().__init__(folder, f"""
  server {{
    listen 127.0.0.1:{port};
    root {root};
    add_header Access-Control-Allow-Origin *;
    add_header Access-Control-Allow-Headers "Range";
    add_header Access-Control-Expose-Headers "Content-Length, Content-Range";
    location ~ \\.(mpd|m3u8)$ {{ add_header Access-Control-Allow-Origin *; add_header Cache-Control no-cache; }}
  }}""", port)
        self.base = f"http://127.0.0.1:{port}"

    def url(self, case):
        return f"{self.base}/{case.name}/{case.path}"


class Counter:
    """A TCP relay in front of a gateway: `sent` bytes went to clients."""

    def __init__(self, port):
        self.target, self.sent, self.connections = port, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client):
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server:
                other = {client: server, server: client}
                try:
                    while other:
                        for source in select.select(list(other), [], [])[0]:
                            data = source.recv(65536)
                            if not data:
                                return
                            other[source].sendall(data)
                            if source is server:
                                self.sent += len(data)
                except OSError:
                    return

    def close(self):
        # Ends the accept first: it would take connections of the next listener that gets this descriptor.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


class Gateway:
    """A gateway in front of one presentation, while the `with` lasts. `url` is for the client; `problem` says why there is none."""

    name = program = None

    def __init__(self, case, source, log):
        self.case, self.source, self.log, self.port, self.problem = case, source, Path(log), free_port(), None

    def command(self):
        raise NotImplementedError

    def path(self):
        raise NotImplementedError

    def environment(self):
        return None

    def __enter__(self):
        self.output = open(self.log, "w")
        self.process = subprocess.Popen(self.command(), stdout=self.output, stderr=subprocess.STDOUT, env=self.environment())
        self.counter = Counter(self.port)
        self.url = f"http://127.0.0.1:{self.counter.port}{self.path()}"
        try:
            shared.wait_for(self.process, self.port)
        except RuntimeError:
            self.process.poll()
            self.problem = self.words() or "it did not start"
            return self
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.path()}", timeout=30).read()
        except urllib.error.HTTPError as error:
            self.problem = f"{error.code}: {error.read(300).decode(errors='replace').strip()}"
        except OSError as error:
            self.problem = str(error)
        return self

    def __exit__(self, *_):
        shared.end(self.process)
        self.counter.close()
        self.output.close()

    def words(self):
        """The last line that it wrote."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else "")


class Reel(Gateway):
    name, program, options = "reel", REEL, ()

    def command(self):
        keys = [word for pair in self.case.keys for word in ("--key", ":".join(pair))]
        return [REEL, "serve", self.source, "--port", str(self.port), *self.options, *keys]

    def path(self):
        return "/master.m3u8"


class ReelProxy(Reel):
    name, options = "reel --proxy", ("--proxy",)


class ReelDirect(Reel):
    name, options = "reel --direct", ("--direct",)


class Mediaflow(Gateway):
    name, program = "mediaflow-proxy", "mediaflow_proxy"

    def command(self):
        return [sys.executable, "-m", "uvicorn", "mediaflow_proxy.main:app", "--host", "127.0.0.1", "--port", str(self.port), "--log-level", "warning"]

    def path(self):
        values = {"d": self.source}
        kind = "hls" if self.case.path.endswith("m3u8") else "mpd"
        # A pair of lists: its option for several keys.
        if self.case.keys:
            values["key_id"] = ",".join(key_id for key_id, _ in self.case.keys)
            values["key"] = ",".join(key for _, key in self.case.keys)
        return f"/proxy/{kind}/manifest.m3u8?" + urllib.parse.urlencode(values)


class Direct:
    """No gateway: the origin's own manifest, for players that read it."""

    name, program, problem = "none", None, None

    def __init__(self, case, source, log):
        self.url = source
        self.counter = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def words(self):
        return ""


GATEWAYS = {each.name: each for each in (Reel, ReelDirect, ReelProxy, Mediaflow, Direct)}


def missing():
    """The programs that are needed and not there."""
    return [name for name in ("nginx", "ffmpeg", REEL) if not shutil.which(name)]
