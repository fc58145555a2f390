"""A walk in GStreamer's playbin3 with its default buffers, with sound. Prints an object a line.

Usage: PLAYER MODE URL-PATTERN ITEMS SWIPES DWELL_MS LIMIT_MS

replaced: one playbin3, which gets the next URL (READY, then PLAYING). preloaded: a second playbin3 has the next item in PAUSED; a
swipe takes its preroll and sets it to PLAYING. The first frame is there when the appsink hands it out, the second when the appsink
says so, as in Benchmarks/pool."""
import json
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "pool"))
import gst_swipes  # noqa: E402
import walks  # noqa: E402
from gst_swipes import Gst  # noqa: E402

# Video as it comes from the decoder, and audio.
FLAGS = 0x1 | 0x2 | 0x40


class Player(gst_swipes.Player):
    def __init__(self, url):
        super().__init__(url, flags=FLAGS, buffer_seconds=None, threads=0)
        audio = Gst.ElementFactory.make("fakesink")
        audio.set_property("sync", True)
        self.bin.set_property("audio-sink", audio)
        self.failure = None

    def first(self, limit):
        """When the preroll or the first sample was there."""
        with self.changed:
            self.until(lambda: {"preroll", "first"} & self.times.keys(), "first", limit)
            return min(self.times[name] for name in ("preroll", "first") if name in self.times)

    def second(self, limit):
        with self.changed:
            self.until(lambda: "second" in self.times, "second", limit)
            return self.times["second"]

    def until(self, condition, name, limit):
        end = time.monotonic() + limit
        while not condition():
            message = self.bin.get_bus().pop_filtered(Gst.MessageType.ERROR)
            if message:
                raise RuntimeError(f"{name} frame: {message.parse_error()[0].message}")
            if time.monotonic() > end:
                raise RuntimeError(f"{name} frame: none in {limit:g} s")
            self.changed.wait(0.1)

    def replace(self, url):
        self.stop()
        with self.changed:
            self.times.clear()
            self.shown = None
        self.bin.set_property("uri", url)
        self.play()


def main():
    mode, url, dwell, limit = walks.arguments()
    print(json.dumps({"version": Gst.version_string().removeprefix("GStreamer ")}), flush=True)
    current = following = None
    for number in range(len(url)):
        old, work = current, []
        result = {"swipe": number, "at": time.time() * 1e3}
        began = time.perf_counter()
        if following:
            current, following = following, None
            result["ready"] = "preroll" in current.times
        elif old and mode == "replaced":
            current.replace(url[number])
        else:
            current = Player(url[number])
            current.play()
        try:
            first = current.first(limit)
            if "ready" in result:
                # It is on show when it has been taken out of the sink.
                current.sink.emit("try-pull-preroll", int(limit * Gst.SECOND))
                first = time.perf_counter()
                current.play()
                # Ending the old one is not to hold the new one up.
                work.append(gst_swipes.aside(old.close))
            result["first_ms"] = (first - began) * 1e3
            result["second_ms"] = (current.second(limit) - began) * 1e3
        except RuntimeError as error:
            result["error"] = str(error)
        print(json.dumps(result), flush=True)
        if number == 0 and "error" in result:
            break
        if mode == "preloaded" and number + 1 < len(url):
            following = Player(url[number + 1])
            work.append(gst_swipes.aside(following.park))
        time.sleep(dwell)
        for thread in work:
            thread.join()
    print(json.dumps({"done": True}), flush=True)
    current.close()


main()
