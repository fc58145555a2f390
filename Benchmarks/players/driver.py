"""Serves the items, starts the players, and reads what they say."""
import sys
from collections import namedtuple
from pathlib import Path

import items
from shared import ADDRESS, CLIENT, SERVER, SYSTEM_PYTHON, Nginx, lines_of, within

HERE = Path(__file__).resolve().parent
Kind = namedtuple("Kind", "script modes")
PLAYERS = {
    # hls.js 0.14 shows no frame of a second source in the same element.
    "hls.js": Kind("browser_feed.py", ("replaced", "preloaded")),
    "video.js": Kind("browser_feed.py", ("replaced", "reused", "preloaded")),
    "chromium": Kind("browser_feed.py", ("replaced", "reused", "preloaded")),
    "mpv": Kind("mpv_feed.py", ("replaced", "preloaded")),
    "playbin3": Kind("gst_feed.py", ("replaced", "preloaded")),
}


def origin(root, folder):
    """nginx at the far end of a link. The first part of a path is another one for each visit, so that no cache has seen it."""
    return Nginx(folder, f"""
  server {{
    listen {ADDRESS}:80;
    location ~ ^/[^/]+/(.*)$ {{
      alias {root}/$1;
      add_header Access-Control-Allow-Origin *;
      add_header Access-Control-Expose-Headers "Content-Length, Content-Range";
    }}
  }}""", 80, ADDRESS, SERVER, CLIENT)


def walk(player, mode, url, swipes, dwell, limit):
    """The lines that a player prints, as `url` has `{swipe}` and `{item}` for it to fill in. Seconds."""
    kind = PLAYERS[player]
    python = sys.executable if kind.script == "browser_feed.py" else SYSTEM_PYTHON
    command = within(CLIENT, python, HERE / kind.script, player, mode, url, items.COUNT, swipes, int(dwell * 1000), int(limit * 1000))
    try:
        for line in lines_of(command, 90 + 3 * (limit + dwell)):
            if line.get("done"):
                return
            yield line
    except RuntimeError as error:
        yield {"error": f"the player's process: {error}"}
