"""Viewers of an HLS playlist for Locust: each fetches the playlist, then its segments, each 3 s before it is due.

    locust -f locustfile.py --headless --host http://127.0.0.1:8080 --users 100 --spawn-rate 10 --run-time 60s

PLAYLIST names the path (/index.m3u8). Locust's statistics have rows for playlists, segments, and segments that came late.
"""
import itertools
import os
import re
import time

import gevent
from locust import FastHttpUser, task

PLAYLIST = os.environ.get("PLAYLIST", "/index.m3u8")
AHEAD = 3
NUMBERS = itertools.count()


class Viewer(FastHttpUser):
    def on_start(self):
        self.fields = {"X-Viewer": str(next(NUMBERS))}

    def fetch(self, path, name):
        with self.client.get(path, name=name, headers=self.fields, catch_response=True) as answer:
            return answer.text if name == "playlist" else len(answer.content)

    @task
    def watch(self):
        text = self.fetch(PLAYLIST, "playlist")
        folder = PLAYLIST.rpartition("/")[0]
        begin, position = None, 0
        for duration, name in re.findall(r"#EXTINF:([\d.]+),.*\n([^#\n]+)", text):
            if begin is not None:
                gevent.sleep(max(0, begin + position - AHEAD - time.monotonic()))
            self.fetch(f"{folder}/{name}", "segment")
            now = time.monotonic()
            if begin is None:
                begin = now
            if now > begin + position:
                late = (now - begin - position) * 1000
                self.environment.events.request.fire(
                    request_type="late", name="segment", response_time=late, response_length=0, exception=None, context={})
            position += float(duration)
