"""The part of a first frame that no player can avoid: its requests, replayed without any work in between."""
import selectors
import socket
import time
from collections import namedtuple

# connection: a name; until: stop counting at this byte of the body, or None for all of it; first_byte: for a range request.
Get = namedtuple("Get", "connection path until first_byte", defaults=(None, None))
# Go on reading the answer to the connection's last Get, up to this byte.
Continue = namedtuple("Continue", "connection until")


class Connection:
    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)
        self.outgoing = b""
        self.incoming = bytearray()
        self.length = None
        self.received = 0
        self.wanted = None

    def ask(self, host, get):
        extra = f"Range: bytes={get.first_byte}-\r\n" if get.first_byte is not None else ""
        self.outgoing += f"GET /{get.path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()
        self.incoming.clear()
        self.length, self.received, self.wanted = None, 0, get.until

    @property
    def satisfied(self):
        if self.length is None:
            return False
        return self.received >= (self.length if self.wanted is None else min(self.wanted, self.length))

    def write(self):
        if self.outgoing:
            sent = self.socket.send(self.outgoing)
            self.outgoing = self.outgoing[sent:]

    def read(self):
        data = self.socket.recv(262144)
        if not data:
            raise SystemExit("benchmark: the server closed a connection in the middle of the replay")
        if self.length is not None:
            self.received += len(data)
            return
        self.incoming += data
        end = self.incoming.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = bytes(self.incoming[:end]).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        fields = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        if status not in (200, 206) or "content-length" not in fields:
            raise SystemExit(f"benchmark: the replay needs a plain answer with Content-Length, not {lines[0]}")
        self.length = int(fields["content-length"])
        self.received = len(self.incoming) - end - 4


def replay(url, plan):
    """Seconds from opening the connections to the last byte that the plan asks for.

    Every connection that the plan uses is opened at the start, at the same time. A stage's requests go out together, when
    all answers of the stage before are complete up to their `until`."""
    names = sorted({step.connection for stage in plan for step in stage})
    with selectors.DefaultSelector() as selector:
        began = time.perf_counter()
        connections = {name: Connection((url.hostname, url.port)) for name in names}
        try:
            for connection in connections.values():
                selector.register(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            for stage in plan:
                for step in stage:
                    connection = connections[step.connection]
                    if isinstance(step, Continue):
                        connection.wanted = step.until
                    else:
                        connection.ask(url.netloc, step)
                        selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
                active = [connections[step.connection] for step in stage]
                while not all(connection.satisfied for connection in active):
                    for key, events in selector.select(30) or stalled():
                        if events & selectors.EVENT_WRITE:
                            key.data.write()
                            if not key.data.outgoing:
                                selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                        if events & selectors.EVENT_READ:
                            key.data.read()
            return time.perf_counter() - began
        finally:
            for connection in connections.values():
                connection.socket.close()


def stalled():
    raise SystemExit("benchmark: nothing arrived for 30 s during the replay")
