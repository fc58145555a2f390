"""libmpv with prefetch-playlist. Usage: swipe COUNT DWELL_MS URL... | memory COUNT URL... | version

The first frame is there when mpv says `playback-restart`: its output, which is `null`, has shown it. `time-pos` is that of
the frame that was given to the output last, and waits there until it is due: the second frame was shown when `time-pos`
changes for the second time."""
import json
import sys
import threading
import time

import mpv


def instance(**more):
    return mpv.MPV(config=False, vo="null", ao="null", hwdec="no", vd_lavc_threads=1, **more)


def swipe(count, dwell, urls):
    state = {"started": True, "values": set()}
    changed = threading.Condition()

    def note(name):
        now = time.perf_counter()
        with changed:
            state.setdefault(name, now)
            changed.notify_all()

    player = instance(prefetch_playlist=True)

    @player.event_callback("start-file")
    def on_start(_):
        with changed:
            state["started"] = True

    @player.event_callback("playback-restart")
    def on_restart(_):
        if state["started"]:
            note("first")

    @player.property_observer("time-pos")
    def on_time(_, value):
        if state["started"] and value is not None:
            state["values"].add(value)
            if len(state["values"]) > 2 and "first" in state:
                note("second")

    for number in range(count + 1):
        player.playlist_append(urls[number % len(urls)])
    player.playlist_pos = 0
    with changed:
        changed.wait_for(lambda: "second" in state, 30)
    time.sleep(dwell)
    for _ in range(count):
        with changed:
            state.clear()
            state.update(started=False, values=set())
            began = time.perf_counter()
        player.command_async("playlist-next")
        with changed:
            changed.wait_for(lambda: "second" in state, 30)
        print(json.dumps({f"{name}_ms": (state[name] - began) * 1e3 for name in ("first", "second") if name in state}),
              flush=True)
        time.sleep(max(0, began + dwell - time.perf_counter()))
    player.terminate()


def memory(count, urls):
    players = []
    for number in range(count):
        # As much as it is told to hold, and nothing behind.
        player = instance(pause=True, cache="yes", cache_secs=3, demuxer_readahead_secs=3, demuxer_max_back_bytes=0)
        there = threading.Event()
        player.event_callback("playback-restart")(lambda _, there=there: there.set())
        player.play(urls[number % len(urls)])
        if not there.wait(30):
            raise SystemExit("mpv: no picture")
        players.append(player)
        if number in (0, count - 1):
            time.sleep(3)
            held = [each.demuxer_cache_state for each in players]
            print(json.dumps({"ready": number + 1, "buffered_s": min(each.get("cache-duration", 0) for each in held),
                              "packets": sum(each["total-bytes"] for each in held) // len(held)}), flush=True)
            sys.stdin.readline()
    for player in players:
        player.terminate()


if sys.argv[1] == "version":
    player = instance()
    print(player.mpv_version)
    player.terminate()
elif sys.argv[1] == "swipe":
    swipe(int(sys.argv[2]), int(sys.argv[3]) / 1e3, sys.argv[4:])
else:
    memory(int(sys.argv[2]), sys.argv[3:])
