"""Plays a URL in headless Chromium by page.html, and prints a sample a line. Usage: PLAYER URL SECONDS HLS.JS"""
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
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--window-size=400,300",
         "--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0"]
samples = queue.Queue()


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.partition("?")[0]
        file = {"/": HERE / "page.html", "/hls.js": Path(sys.argv[4])}.get(name)
        body = file.read_bytes() if file and file.is_file() else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if name == "/" else "text/javascript")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        samples.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def main():
    player, url, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = urllib.parse.urlencode({"player": player, "url": url})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen([os.environ.get("CHROMIUM", "chromium"), *FLAGS, f"--user-data-dir={profile}",
                                    f"http://127.0.0.1:{server.server_port}/?{query}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            # The seconds count from the page's first sample.
            began, limit = None, time.monotonic() + 30
            while time.monotonic() < limit:
                try:
                    sample = {"at": time.monotonic(), **samples.get(timeout=1)}
                except queue.Empty:
                    continue
                if began is None:
                    began, limit = sample["at"], sample["at"] + seconds
                print(json.dumps(sample), flush=True)
                if sample["ended"] or sample["failed"]:
                    break
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(5)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            process.wait()
            time.sleep(0.2)


main()
