"""A walk in headless Chromium, by feed.html: hls.js, Video.js, or Chromium's own player. Prints an object a line.

Usage: PLAYER MODE URL-PATTERN ITEMS SWIPES DWELL_MS LIMIT_MS
"""
import json
import queue
import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from shared import LIBRARIES, Browser  # noqa: E402

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
query = dict(zip(("player", "mode", "url", "items", "swipes", "dwell", "limit"), sys.argv[1:]))
with Browser(HERE / "feed.html", LIBRARIES, "360,640", **query) as page:
    try:
        result = {}
        while not result.get("done"):
            result = page.said.get(timeout=60 + 2 * (int(query["limit"]) + int(query["dwell"])) / 1000)
            print(json.dumps(result), flush=True)
    except queue.Empty:
        print(json.dumps({"error": "Chromium reported nothing"}), flush=True)
    # From here on Chromium is ended, whatever happens.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
