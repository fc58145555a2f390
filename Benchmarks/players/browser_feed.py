"""A walk in headless Chromium, by feed.html: hls.js, Video.js, or Chromium's own player. Prints an object a line.

Usage: PLAYER MODE URL-PATTERN ITEMS SWIPES DWELL_MS LIMIT_MS SCRIPTS-FOLDER
"""
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHROMIUM = os.environ.get("CHROMIUM", "chromium")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--window-size=360,640",
         "--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0"]
reports = queue.Queue()


class Page(http.server.BaseHTTPRequestHandler):
    """The page and its scripts over loopback: on the link is the media alone."""

    def do_GET(self):
        name = self.path.partition("?")[0].lstrip("/")
        file = HERE / "feed.html" if name == "" else Path(sys.argv[8]) / Path(name).name
        body = file.read_bytes() if file.is_file() else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/javascript" if name else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def end(process):
    """Chromium and the processes that it started: they are a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def main():
    player, mode, url, items, swipes, dwell, limit = sys.argv[1:8]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = urllib.parse.urlencode({"player": player, "mode": mode, "url": url, "items": items, "swipes": swipes, "dwell": dwell,
                                    "limit": limit})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/?{query}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            while True:
                result = reports.get(timeout=60 + 2 * (int(limit) + int(dwell)) / 1000)
                print(json.dumps(result), flush=True)
                if result.get("done"):
                    break
        except queue.Empty:
            print(json.dumps({"error": "Chromium reported nothing"}), flush=True)
        finally:
            end(process)
            # What ended just now may still write into the profile.
            time.sleep(0.2)


if __name__ == "__main__":
    main()
