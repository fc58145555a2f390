"""A file server that holds back some of what it serves, to see what a player waits for.

Usage: ADDRESS ROOT PATTERN OFFSET SECONDS

A response for a path in which the regular expression PATTERN is found stops before the byte OFFSET of the file (50% of it, 1000, or -1000: before
the last 1000) until so many seconds have gone by since the first request for it."""
import http.server
import re
import sys
import time
from pathlib import Path

ADDRESS, ROOT, PATTERN, OFFSET, SECONDS = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5])
TYPES = {".m3u8": "application/vnd.apple.mpegurl", ".ts": "video/mp2t", ".mp4": "video/mp4", ".m4s": "video/mp4"}
first_asked = {}


def offset_in(size):
    if OFFSET.endswith("%"):
        return size * int(OFFSET[:-1]) // 100
    return int(OFFSET) % size


class Files(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        file = ROOT / self.path.split("/", 2)[2]
        if not file.is_file():
            self.send_error(404)
            return
        data = file.read_bytes()
        first, last = 0, len(data) - 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = int(asked[1]), min(last, int(asked[2] or last))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        for name, value in (("Content-Type", TYPES[file.suffix]), ("Content-Length", str(last + 1 - first)), ("Accept-Ranges", "bytes"),
                            ("Access-Control-Allow-Origin", "*")):
            self.send_header(name, value)
        self.end_headers()
        stop = offset_in(len(data)) if re.search(PATTERN, self.path) else None
        if stop is not None and not first <= stop <= last:
            stop = None
        try:
            if stop is not None:
                began = first_asked.setdefault(self.path, time.monotonic())
                self.wfile.write(data[first:stop])
                time.sleep(max(0, began + SECONDS - time.monotonic()))
                first = stop
            self.wfile.write(data[first:last + 1])
        except OSError:
            self.close_connection = True

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A player that closes its connection is none."""


Server((ADDRESS, 80), Files).serve_forever()
