"""A walk in libmpv with its default options and no window. Prints an object a line.

Usage: PLAYER MODE URL-PATTERN ITEMS SWIPES DWELL_MS LIMIT_MS

replaced: `loadfile` in the same player. preloaded: a second player, paused at the first frame of the next item. The first frame
is there when mpv says `playback-restart`: its output, `null`, has drawn it. `time-pos` is the time of the frame that was given to
the output last and waits there until it is due: the second frame was drawn when `time-pos` changes for the second time."""
import json
import threading
import time

import mpv
import walks


class Player:
    def __init__(self):
        self.changed = threading.Condition()
        self.reset()
        self.mpv = mpv.MPV(config=False, vo="null", ao="null", hwdec="no")
        self.mpv.event_callback("start-file")(lambda _: self.start())
        self.mpv.event_callback("playback-restart")(lambda _: self.note("first"))
        self.mpv.event_callback("end-file")(lambda event: self.on_end(event))
        self.mpv.property_observer("time-pos")(lambda name, value: self.on_time(value))

    def reset(self):
        self.times, self.positions, self.is_started = {}, [], False

    def start(self):
        with self.changed:
            self.is_started = True

    def note(self, name):
        now = time.perf_counter()
        with self.changed:
            if self.is_started:
                self.times.setdefault(name, now)
                self.changed.notify_all()

    def on_end(self, event):
        # By the version of python3-mpv: an object, or a dictionary; the reason in it, or in a dictionary in it.
        event = event if isinstance(event, dict) else event.as_dict()
        details = event["event"] if isinstance(event.get("event"), dict) else event
        if str(details.get("reason")) in ("4", "b'error'", "error"):
            self.note("failed")

    def on_time(self, value):
        with self.changed:
            if value is None or not self.is_started or value in self.positions:
                return
            self.positions.append(value)
        if len(self.positions) > 2:
            self.note("second")

    def load(self, url, is_paused):
        with self.changed:
            self.reset()
        self.mpv.pause = is_paused
        self.mpv.command_async("loadfile", url, "replace")

    def show(self):
        """Ends the pause. The frame on show is the first; the next one goes to the output at once, but is drawn when it is due."""
        with self.changed:
            if "first" in self.times:
                self.positions = self.positions[-1:]
                self.times.pop("second", None)
        self.mpv.pause = False

    def wait(self, name, limit):
        with self.changed:
            self.changed.wait_for(lambda: name in self.times or "failed" in self.times, limit)
            if name not in self.times:
                raise RuntimeError(f"{name} frame: " + ("mpv could not play it" if "failed" in self.times else f"none in {limit:g} s"))
            return self.times[name]


def main():
    mode, url, dwell, limit = walks.arguments()
    players = [Player() for _ in range(2 if mode == "preloaded" else 1)]
    print(json.dumps({"version": players[0].mpv.mpv_version.removeprefix("mpv ")}), flush=True)
    for number in range(len(url)):
        player = players[number % len(players)]
        result = {"swipe": number, "at": time.time() * 1e3}
        began = time.perf_counter()
        if mode == "preloaded" and number > 0:
            result["ready"] = "first" in player.times
            player.show()
            players[(number + 1) % 2].mpv.command_async("stop")
        else:
            player.load(url[number], False)
        try:
            result["first_ms"] = max(0, (player.wait("first", limit) - began) * 1e3)
            result["second_ms"] = (player.wait("second", limit) - began) * 1e3
        except RuntimeError as error:
            result["error"] = str(error)
        print(json.dumps(result), flush=True)
        if number == 0 and "error" in result:
            break
        if mode == "preloaded" and number + 1 < len(url):
            players[(number + 1) % 2].load(url[number + 1], True)
        time.sleep(dwell)
    print(json.dumps({"done": True}), flush=True)
    for player in players:
        player.mpv.terminate()


main()
