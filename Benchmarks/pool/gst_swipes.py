"""GStreamer's playbin3. Usage: swipe parked|one COUNT DWELL_MS URL... | memory COUNT URL... | version

`parked`: a second playbin3 has the next item in PAUSED; a swipe takes its preroll and sets it to PLAYING. `one`: one
playbin3, which gets the next URL (READY, then PLAYING). The first frame is there when the appsink hands it out, the second
when the appsink says so."""
import json
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401

BUFFER_SECONDS = 3
# Video alone, as it comes from the decoder.
FLAGS = 0x1 | 0x40


class Player:
    def __init__(self, url, flags=FLAGS, buffer_seconds=BUFFER_SECONDS, threads=1):
        """`buffer_seconds` None and `threads` 0 leave the defaults."""
        self.buffer_seconds, self.threads = buffer_seconds, threads
        self.changed = threading.Condition()
        self.times = {}
        # The first frame's timestamp.
        self.shown = None
        self.sink = Gst.ElementFactory.make("appsink")
        # As a video output: each frame when it is due.
        for name, value in (("sync", True), ("emit-signals", True), ("max-buffers", 1), ("drop", True), ("qos", True)):
            self.sink.set_property(name, value)
        self.sink.connect("new-preroll", self.on_preroll)
        self.sink.connect("new-sample", self.on_sample)
        self.bin = Gst.ElementFactory.make("playbin3")
        self.bin.connect("element-setup", self.on_element)
        self.bin.set_property("video-sink", self.sink)
        self.bin.set_property("flags", flags)
        if buffer_seconds:
            self.bin.set_property("buffer-duration", buffer_seconds * Gst.SECOND)
        self.bin.set_property("uri", url)

    def on_element(self, _, element):
        name = element.get_factory().get_name() if element.get_factory() else ""
        if name == "avdec_h264":
            element.set_property("max-threads", self.threads)
        if self.buffer_seconds and element.find_property("max-buffering-time"):
            element.set_property("max-buffering-time", self.buffer_seconds * Gst.SECOND)

    def note(self, name):
        now = time.perf_counter()
        with self.changed:
            self.times.setdefault(name, now)
            self.changed.notify_all()

    def on_preroll(self, sink):
        self.note("preroll")
        return Gst.FlowReturn.OK

    def on_sample(self, sink):
        sample = sink.emit("pull-sample")
        if sample:
            self.note_sample(sample)
        return Gst.FlowReturn.OK

    def note_sample(self, sample):
        """PLAYING shows the preroll once more: the second frame is the first of another time."""
        time = sample.get_buffer().pts
        if self.shown is None:
            self.shown = time
        self.note("first" if time == self.shown else "second")

    def park(self):
        self.bin.set_state(Gst.State.PAUSED)

    def stop(self):
        self.bin.set_state(Gst.State.READY)

    def play(self):
        self.bin.set_state(Gst.State.PLAYING)

    def picture(self, limit=30):
        """The preroll, as soon as it is there: before, a sink that has not started says at once that it has none."""
        self.wait("preroll", limit)
        return self.sink.emit("try-pull-preroll", limit * Gst.SECOND)

    def wait(self, name, limit=30):
        with self.changed:
            self.changed.wait_for(lambda: name in self.times, limit)

    def close(self):
        self.bin.set_state(Gst.State.NULL)


def aside(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def result(began, first, second):
    fields = {"first_ms": (first - began) * 1e3}
    if second:
        fields["second_ms"] = (second - began) * 1e3
    print(json.dumps(fields), flush=True)


def swipe_parked(count, dwell, urls):
    current, following = Player(urls[0]), Player(urls[1 % len(urls)])
    current.park()
    if not current.picture():
        raise SystemExit("playbin3: no picture")
    current.play()
    following.park()
    time.sleep(dwell)
    for number in range(1, count + 1):
        began = time.perf_counter()
        if not following.picture():
            raise SystemExit("playbin3: no picture")
        first = time.perf_counter()
        following.play()
        old, current = current, following
        # Ending the old one is not to hold the new one up, nor is opening the next.
        closing = aside(old.close)
        following = Player(urls[(number + 1) % len(urls)])
        opening = aside(following.park)
        current.wait("second")
        result(began, first, current.times.get("second"))
        time.sleep(max(0, began + dwell - time.perf_counter()))
        closing.join()
        opening.join()
    current.close()
    following.close()


def swipe_one(count, dwell, urls):
    player = Player(urls[0])
    player.play()
    player.wait("second")
    time.sleep(dwell)
    for number in range(1, count + 1):
        began = time.perf_counter()
        player.stop()
        player.times.clear()
        player.shown = None
        player.bin.set_property("uri", urls[number % len(urls)])
        player.play()
        player.wait("second")
        # PLAYING at once has no preroll of its own to be waited for.
        first = min(player.times[name] for name in ("preroll", "first") if name in player.times)
        result(began, first, player.times.get("second"))
        time.sleep(max(0, began + dwell - time.perf_counter()))
    player.close()


def memory(count, urls):
    players = []
    for number in range(count):
        player = Player(urls[number % len(urls)])
        player.park()
        if not player.picture():
            raise SystemExit("playbin3: no picture")
        players.append(player)
        if number in (0, count - 1):
            time.sleep(3)
            print(json.dumps({"ready": number + 1}), flush=True)
            sys.stdin.readline()
    for player in players:
        player.close()


Gst.init(None)
if __name__ == "__main__":
    if sys.argv[1] == "version":
        print(Gst.version_string())
    elif sys.argv[1] == "swipe":
        {"parked": swipe_parked, "one": swipe_one}[sys.argv[2]](int(sys.argv[3]), int(sys.argv[4]) / 1e3, sys.argv[5:])
    else:
        memory(int(sys.argv[2]), sys.argv[3:])
