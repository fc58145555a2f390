#!/usr/bin/env python3
"""Plays HLS URLs in headless Chromium, each to its end, and prints what the <video> element says: a JSON object a line.

    Benchmarks/chromium_hls.py URL... [--chromium PATH] [--timeout SECONDS]

Exit code 0 where all ended without an error. A page served by this script plays the URL and posts what comes of it.
Chromium plays HLS by itself from version 142 on; no library is loaded.
"""
import argparse
import http.server
import json
import queue
import subprocess
import sys
import tempfile
import threading
import urllib.parse

PAGE = """<!doctype html><title>HLS</title><video muted playsinline crossorigin></video><script>
const video = document.querySelector("video");
const events = [];
let isDone = false;
function report(outcome) {
  if (isDone) return;
  isDone = true;
  fetch("/result", {method: "POST", body: JSON.stringify({
    outcome, error: video.error && (video.error.code + ": " + video.error.message),
    time: video.currentTime, duration: video.duration, width: video.videoWidth, height: video.videoHeight,
    frames: video.getVideoPlaybackQuality().totalVideoFrames,
    dropped: video.getVideoPlaybackQuality().droppedVideoFrames,
    audio_bytes: video.webkitAudioDecodedByteCount, stalls: events.filter(e => e === "waiting").length,
  })});
}
for (const name of ["waiting", "stalled", "loadedmetadata", "playing"])
  video.addEventListener(name, () => events.push(name));
video.addEventListener("ended", () => report("ended"));
video.addEventListener("error", () => report("error"));
setTimeout(() => report("timed out"), Number(new URLSearchParams(location.search).get("ms")));
video.src = new URLSearchParams(location.search).get("src");
video.play().catch(error => report("refused: " + error.message));
</script>"""


class Page(http.server.BaseHTTPRequestHandler):
    results = queue.Queue()

    def do_GET(self):
        body = PAGE.encode()
        self.send_response(200 if self.path.startswith("/?") else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def play(url, page, chromium, timeout):
    """What the page reports of `url`."""
    query = urllib.parse.urlencode({"src": url, "ms": int(timeout * 1000)})
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--mute-audio",
            "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={profile}",
            "--remote-debugging-port=0", f"{page}?{query}",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return Page.results.get(timeout=timeout + 20)
        except queue.Empty:
            return {"outcome": "no report"}
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--timeout", type=float, default=30, help="of one URL, in seconds (30)")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = f"http://127.0.0.1:{server.server_port}/"
    failures = 0
    for url in options.urls:
        result = play(url, page, options.chromium, options.timeout)
        failures += result["outcome"] != "ended"
        print(json.dumps({"url": url, **result}), flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
