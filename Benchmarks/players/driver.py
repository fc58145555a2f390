"""Starts the players, and reads what they say."""
import json
import os
import queue
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections import namedtuple
from pathlib import Path

import items
import network

HERE = Path(__file__).resolve().parent
# The Python that has python3-mpv and python3-gi: that of the system.
SYSTEM_PYTHON = os.environ.get("SYSTEM_PYTHON", "/usr/bin/python3")
Kind = namedtuple("Kind", "script modes")
PLAYERS = {
    # hls.js 0.14 shows no frame of a second source in the same element.
    "hls.js": Kind("browser_feed.py", ("replaced", "preloaded")),
    "video.js": Kind("browser_feed.py", ("replaced", "reused", "preloaded")),
    "chromium": Kind("browser_feed.py", ("replaced", "reused", "preloaded")),
    "mpv": Kind("mpv_feed.py", ("replaced", "preloaded")),
    "playbin3": Kind("gst_feed.py", ("replaced", "preloaded")),
}
# PyPI's packages that have the two libraries, and where in them.
LIBRARIES = {"OctoPrint==1.11.8": ("octoprint/static/js/lib/hls.js", "hls.js"),
             "js.videojs==7.5.5": ("js/videojs/resources/video.min.js", "video.min.js")}


def note(text):
    print(f"players: {text}", file=sys.stderr, flush=True)


def fetch_libraries():
    folder = items.CACHE / "js"
    for package, (path, name) in LIBRARIES.items():
        if (folder / name).exists():
            continue
        note(f"fetching {package}")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as spare:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", spare, package], check=True)
            archive = next(Path(spare).iterdir())
            if archive.suffix == ".whl":
                data = zipfile.ZipFile(archive).read(path)
            else:
                with tarfile.open(archive) as tar:
                    data = tar.extractfile(next(each for each in tar if each.name.endswith(path))).read()
            (folder / name).write_bytes(data)
    return folder


def lines_of(command, limit):
    """The objects that a command prints; where none comes for `limit` seconds, an error, and the command is ended."""
    errors = tempfile.TemporaryFile("w+")
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
    said = queue.Queue()

    def read():
        for line in process.stdout:
            if line.startswith("{"):
                said.put(json.loads(line))
        said.put({"ended": True})

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            line = said.get(timeout=limit)
            if line.get("done"):
                return
            if line.get("ended"):
                errors.seek(0)
                yield {"error": "the player's process ended: " + (errors.read().strip().split("\n")[-1] or "without a word")}
                return
            yield line
    except queue.Empty:
        yield {"error": f"no word in {limit:g} s"}
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                break


def walk(player, mode, url, swipes, dwell, limit):
    """The lines that a player prints, as `url` has `{swipe}` and `{item}` for it to fill in. Seconds."""
    kind = PLAYERS[player]
    python = sys.executable if kind.script == "browser_feed.py" else SYSTEM_PYTHON
    command = network.within(network.CLIENT, python, HERE / kind.script, player, mode, url, items.COUNT, swipes, int(dwell * 1000),
                             int(limit * 1000), items.CACHE / "js")
    yield from lines_of(command, 90 + 3 * (limit + dwell))
