"""Plays a URL with GStreamer's playbin3 and prints a sample a line. Usage: URL SECONDS

The sinks are fakesinks that follow the clock. As a player does, it pauses while playbin3 says that it buffers, except for a live source.
"""
import json
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)
# Video, audio.
FLAGS = 0x1 | 0x2


def sink(counts, name):
    element = Gst.ElementFactory.make("fakesink")
    element.set_property("sync", True)
    element.set_property("signal-handoffs", True)

    def handoff(_, buffer, __):
        counts[name] += 1
        counts[name + "_time"] = buffer.pts

    element.connect("handoff", handoff)
    return element


def main():
    url, seconds = sys.argv[1], float(sys.argv[2])
    counts = {"video": 0, "audio": 0}
    player = Gst.ElementFactory.make("playbin3")
    player.set_property("uri", url)
    player.set_property("flags", FLAGS)
    player.set_property("video-sink", sink(counts, "video"))
    player.set_property("audio-sink", sink(counts, "audio"))
    demuxers = set()
    player.connect("deep-element-added", lambda _, __, element: demuxers.add(element.get_factory().get_name()) if element.get_factory() else None)
    is_live = player.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.NO_PREROLL
    bus = player.get_bus()
    problems, failed, ended, is_waiting, waits = [], None, False, False, 0
    limit = time.monotonic() + seconds
    while time.monotonic() < limit and not failed and not ended:
        message = bus.timed_pop(250 * Gst.MSECOND)
        while message:
            if message.type == Gst.MessageType.ERROR:
                error, details = message.parse_error()
                failed = f"{error.message} ({(details or '').splitlines()[-1] if details else ''})"
            elif message.type == Gst.MessageType.WARNING:
                text = message.parse_warning()[0].message
                # A fakesink has no volume.
                if text not in problems and "volume" not in text:
                    problems.append(text)
            elif message.type == Gst.MessageType.EOS:
                ended = True
            elif message.type == Gst.MessageType.BUFFERING and not is_live:
                percent = message.parse_buffering()
                if percent < 100 and not is_waiting and counts["video"] > 1:
                    waits += 1
                if percent < 100 and not is_waiting:
                    player.set_state(Gst.State.PAUSED)
                elif percent == 100 and is_waiting:
                    player.set_state(Gst.State.PLAYING)
                is_waiting = percent < 100
            message = bus.pop()
        found, position = player.query_position(Gst.Format.TIME)
        print(json.dumps({"at": time.monotonic(), "position": position / Gst.SECOND if found and counts["video"] else None,
                          "frames": counts["video"], "audio_frames": counts["audio"], "ended": ended, "failed": failed, "waiting": waits,
                          "problems": problems[:20], "version": Gst.version_string().removeprefix("GStreamer "),
                          "demuxer": next((name for name in sorted(demuxers) if "hls" in name), None)}), flush=True)
    player.set_state(Gst.State.NULL)


main()
