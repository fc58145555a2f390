"""A shaped link between two network namespaces, and nginx at its far end. It needs root, iproute2, a C compiler, nginx."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DELAY, HELD = HERE.parent / "link" / "delay.c", HERE / "held.py"
SERVER, CLIENT = "reel-players-server", "reel-players-client"
ADDRESS = "10.77.2.1"
# As deep as in Benchmarks/link.
QUEUE = 1_000_000

CONFIGURATION = """
daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{}}
http {{
  types {{ application/vnd.apple.mpegurl m3u8; video/mp2t ts; video/mp4 mp4 m4s; }}
  log_format requests escape=json '{{"end":$msec,"took":$request_time,"connection":$connection,"number":$connection_requests,'
    '"path":"$request_uri","status":$status,"bytes":$body_bytes_sent,"range":"$http_range","complete":"$request_completion"}}';
  access_log {folder}/requests requests;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen {address}:80;
    # The first part of a path is another one for each visit, so that no cache has seen it.
    location ~ ^/[^/]+/(.*)$ {{
      alias {root}/$1;
      add_header Access-Control-Allow-Origin *;
      add_header Access-Control-Expose-Headers "Content-Length, Content-Range";
    }}
  }}
}}
"""


def sh(*words):
    subprocess.run(words, check=True)


def within(namespace, *words):
    return ["ip", "netns", "exec", namespace, *map(str, words)]


def rate_and_delay(link):
    """Bits a second and one-way microseconds of `10Mbit/50ms`, whose delay is the round trip; `unlimited` has neither."""
    if link == "unlimited":
        return 0, 0
    found = re.fullmatch(r"([\d.]+)Mbit/([\d.]+)ms", link)
    if not found:
        raise SystemExit(f"players: {link}: not a link; write it as 10Mbit/50ms, or unlimited")
    return int(float(found[1]) * 1e6), int(float(found[2]) * 500)


class Link:
    """The namespaces, the link and the server, while the `with` lasts. `held`: arguments of held.py, which serves in place of nginx."""

    def __init__(self, name, root, folder, queue=QUEUE, held=None):
        self.name, self.root, self.folder, self.queue, self.held = name, root, Path(folder), queue, held
        self.dropped = None
        self.delay = self.server = None

    def __enter__(self):
        program = self.folder / "delay"
        if not program.exists():
            sh(os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", str(program), str(DELAY))
        rate, delay = rate_and_delay(self.name)
        try:
            for name in SERVER, CLIENT:
                subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
                sh("ip", "netns", "add", name)
                sh("ip", "-n", name, "link", "set", "dev", "lo", "up")
            self.delay = subprocess.Popen([program, SERVER, CLIENT, str(rate), str(delay), str(self.queue)], stdout=subprocess.PIPE, text=True)
            self.delay.stdout.readline()
            for name, address, other in (SERVER, ADDRESS, "10.77.2.2"), (CLIENT, "10.77.2.2", ADDRESS):
                sh("ip", "-n", name, "address", "add", address, "peer", other, "dev", "link")
                sh("ip", "-n", name, "link", "set", "dev", "link", "mtu", "1500", "up")
                # What one connection learnt is not to be told to the next.
                subprocess.run(within(name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"), check=False)
            self.start_server()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_server(self):
        (self.folder / "requests").write_text("")
        configuration = self.folder / "configuration"
        configuration.write_text(CONFIGURATION.format(folder=self.folder, root=self.root, address=ADDRESS))
        command = ["nginx", "-c", configuration, "-p", self.folder]
        if self.held:
            command = [sys.executable, HELD, ADDRESS, self.root, *self.held]
        self.server = subprocess.Popen(within(SERVER, *command))
        limit = time.monotonic() + 10
        while subprocess.run(within(CLIENT, "bash", "-c", f": < /dev/tcp/{ADDRESS}/80"), stderr=subprocess.DEVNULL).returncode:
            if self.server.poll() is not None or time.monotonic() > limit:
                raise SystemExit("players: the server did not start")
            time.sleep(0.1)

    def requests(self):
        """What nginx has logged; a request is logged when it has ended."""
        return [json.loads(line) for line in (self.folder / "requests").read_text().splitlines()]

    def __exit__(self, *_):
        if self.server:
            self.server.terminate()
            self.server.wait()
        if self.delay:
            self.delay.terminate()
            self.dropped = int((self.delay.communicate()[0].split() or ["0", "0"])[-1])
        for name in SERVER, CLIENT:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
