"""Median seconds to decode the first picture alone: a new decoder, one packet, drain. Usage: RUNS FILE... CUT|None

The files are joined and cut behind the picture; demultiplexing is not part of the time."""
import io
import statistics
import sys
import time
from pathlib import Path

import av

runs, files, cut = int(sys.argv[1]), sys.argv[2:-1], sys.argv[-1]
data = b"".join(Path(file).read_bytes() for file in files)
if cut != "None":
    # Some bytes more, as a demuxer may look for the next packet before it hands out this one.
    data = data[: int(cut) + 65536]
times = []
for _ in range(runs):
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        packet = next(packet for packet in container.demux(stream) if packet.size)
        began = time.perf_counter()
        decoder = av.CodecContext.create(stream.codec_context.name, "r")
        decoder.extradata = stream.codec_context.extradata
        decoder.thread_count = 1
        frames = decoder.decode(packet) + decoder.decode(None)
        times.append(time.perf_counter() - began)
        assert len(frames) == 1, f"{len(frames)} pictures from one packet"
print(statistics.median(times))
