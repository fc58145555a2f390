"""PyAV. Usage: swipe cold|parked COUNT DWELL_MS URL... | memory open|closed COUNT URL... | version

`cold`: opened and decoded on the swipe. `parked`: a naive park: while an item plays, the next one's container is opened in
another thread, its first frame decoded, and 3 s of packets read. The second frame is there when it is decoded: it is not
waited for until it is due."""
import json
import sys
import threading
import time

import av

BUFFER_SECONDS = 3


class Parked:
    """An open container with its first frame; with 3 s of packets and a decoder, open or closed."""

    def __init__(self, url, buffer=True, closes=False):
        self.container = av.open(url)
        self.stream = self.container.streams.video[0]
        self.decoder = av.CodecContext.create(self.stream.codec_context.codec.name, "r")
        self.decoder.extradata = self.stream.codec_context.extradata
        self.decoder.thread_count = 1
        self.packets = []
        self.ready = []
        self.demuxer = self.container.demux(self.stream)
        self.seen = []
        first = None
        while first is None:
            packet = next(self.demuxer)
            self.seen.append(packet)
            self.ready += self.decoder.decode(packet)
            if self.ready:
                first = self.ready.pop(0)
        self.first = first
        if closes:
            # To be decoded again from the key frame.
            self.packets, self.seen, self.ready = self.seen, [], []
            self.decoder = None
        else:
            self.seen = []
        if buffer:
            start = packet.dts
            for packet in self.demuxer:
                self.packets.append(packet)
                if packet.dts is None or (packet.dts - start) * packet.time_base >= BUFFER_SECONDS:
                    break

    def next(self):
        while not self.ready:
            packet = self.packets.pop(0) if self.packets else next(self.demuxer)
            self.ready += self.decoder.decode(packet)
        return self.ready.pop(0)

    def play(self, until):
        """Decodes each frame when it is due, until then."""
        began = time.perf_counter()
        frame = self.next()
        offset = frame.time
        while True:
            due = began + frame.time - offset
            time.sleep(max(0, min(due, until) - time.perf_counter()))
            if due >= until:
                return
            frame = self.next()

    def close(self):
        self.container.close()


def swipe(parks, count, dwell, urls):
    def park(number, into):
        into.append(Parked(urls[number % len(urls)]))

    current = Parked(urls[0])
    for number in range(1, count + 1):
        slot = []
        thread = threading.Thread(target=park, args=(number, slot)) if parks else None
        if thread:
            thread.start()
        current.play(time.perf_counter() + dwell)
        began = time.perf_counter()
        if thread:
            thread.join()
            following = slot[0]
        else:
            following = Parked(urls[number % len(urls)], buffer=False)
        assert following.first.width == 720
        first = time.perf_counter()
        following.next()
        second = time.perf_counter()
        print(json.dumps({"first_ms": (first - began) * 1e3, "second_ms": (second - began) * 1e3}), flush=True)
        current.close()
        current = following


def memory(closes, count, urls):
    parked = []
    for number in range(count):
        parked.append(Parked(urls[number % len(urls)], closes=closes))
        if number in (0, count - 1):
            time.sleep(3)
            size = sum(packet.size for each in parked for packet in each.packets) // len(parked)
            print(json.dumps({"ready": number + 1, "packets": size}), flush=True)
            sys.stdin.readline()


if sys.argv[1] == "version":
    print("PyAV", av.__version__, "over libavcodec", ".".join(map(str, av.library_versions["libavcodec"])))
elif sys.argv[1] == "swipe":
    swipe(sys.argv[2] == "parked", int(sys.argv[3]), int(sys.argv[4]) / 1e3, sys.argv[5:])
else:
    memory(sys.argv[2] == "closed", int(sys.argv[3]), sys.argv[4:])
