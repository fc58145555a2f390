"""The server of `Benchmarks/transport/run`: answers that never come, that never end, and that break the rules."""
import gzip
import socket
import ssl
import threading
import time


class Server:
    """One thread per connection. `waiting` counts requests that get no answer; `sent` the bytes of the endless body."""

    def __init__(self, certificate=None, key=None):
        self.waiting = 0
        self.sent = 0
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        threading.stack_size(256 << 10)
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            while True:
                head = b""
                while b"\r\n\r\n" not in head:
                    part = connection.recv(65536)
                    if not part:
                        return
                    head += part
                path = head.split(b" ", 2)[1].decode()
                if self._answer(connection, path, head) is False:
                    return
        except OSError:
            pass
        finally:
            connection.close()

    def _answer(self, c, path, head):
        ok = b"HTTP/1.1 200 OK\r\n"
        name = path.strip("/").split("?")[0]
        if head.startswith(b"HEAD"):
            return c.sendall(ok + b"Content-Length: 0\r\n\r\n")
        if name == "small":
            return c.sendall(ok + b"Content-Length: 1000\r\n\r\n" + b"x" * 1000)
        if name == "wait":
            self.waiting += 1
            try:
                c.recv(1)
            finally:
                self.waiting -= 1
            return False
        if name == "endless":
            size = 1 << 30
            c.sendall(ok + b"Content-Length: %d\r\n\r\n" % size)
            block = b"y" * 65536
            for _ in range(size // len(block)):
                c.sendall(block)
                self.sent += len(block)
            return None
        if name == "garbage":
            c.sendall(b"\x00\x01\xffnot http at all\r\n\r\n" * 20)
            return False
        if name == "header-garbage":
            c.sendall(ok + b"Bad Header\x01\r\n: none\r\nContent-Length: 3\r\n\r\nabc")
            return False
        if name == "endless-headers":
            c.sendall(ok)
            for n in range(4_000_000):
                c.sendall((b"X-%d: " % n) + b"z" * 1000 + b"\r\n")
            return False
        if name == "slow-head":
            for byte in ok + b"Content-Length: 3\r\n\r\nabc" + b" " * 100:
                c.sendall(bytes([byte]))
                time.sleep(0.5)
            return False
        if name == "slow-body":
            c.sendall(ok + b"Content-Length: 1000\r\n\r\nabc")
            time.sleep(30)
            return False
        if name == "too-short":
            c.sendall(ok + b"Content-Length: 1000\r\n\r\n" + b"x" * 500)
            return False
        if name == "too-long":
            c.sendall(ok + b"Content-Length: 500\r\n\r\n" + b"x" * 1000)
            return False
        if name == "two-lengths":
            c.sendall(ok + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\nabcdefghi")
            return False
        if name == "negative-length":
            c.sendall(ok + b"Content-Length: -5\r\n\r\nabcdefghi")
            return False
        if name == "chunk-garbage":
            c.sendall(ok + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nhello\r\n0\r\n\r\n")
            return False
        if name == "chunk-huge":
            c.sendall(ok + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n")
            return False
        if name == "chunk-cut":
            c.sendall(ok + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe")
            return False
        if name.startswith("loop"):
            c.sendall(b"HTTP/1.1 302 Found\r\nLocation: /loop%d\r\nContent-Length: 0\r\n\r\n" % (len(name) % 2))
            return None
        if name == "to-file":
            return c.sendall(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")
        if name == "bomb":
            body = gzip.compress(b"\0" * (256 << 20), 9)
            c.sendall(ok + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            return None
        if name == "gzip-garbage":
            c.sendall(ok + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!")
            return None
        if name == "wrong-range":
            c.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n0123456789")
            return None
        if name == "early-hints":
            c.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 2000 + ok + b"Content-Length: 3\r\n\r\nabc")
            return None
        if name == "reset":
            c.sendall(ok + b"Content-Length: 1000\r\n\r\n" + b"x" * 500)
            time.sleep(0.05)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return False
        return c.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
