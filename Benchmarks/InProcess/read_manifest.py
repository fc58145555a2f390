"""Reads one manifest over and over in one process, as ReadManifest.swift does, with mpegdash or m3u8.

    read_manifest.py FILE RUNS open|segments

mpegdash lists no segments: `segments` is for playlists, and reads the URL and duration of each, and where it starts.
"""
import json
import resource
import statistics
import sys
import time


def peak_memory():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    path, runs, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".mpd"):
        from mpegdash.parser import MPEGDASHParser

        def parse():
            return MPEGDASHParser.parse(text)
    else:
        import m3u8

        def parse():
            return m3u8.loads(text, uri="https://origin.example/vod/media.m3u8")

    before, times, count, checksum = peak_memory(), [], 0, 0
    for _ in range(runs):
        began = time.process_time()
        manifest = parse()
        if mode == "segments":
            start, count = 0.0, 0
            for segment in manifest.segments:
                checksum += len(segment.absolute_uri)
                start += segment.duration
                count += 1
        times.append((time.process_time() - began) * 1000)
        del manifest
    print(json.dumps({
        "first_ms": times[0], "median_ms": statistics.median(times), "segments": count, "memory_bytes": peak_memory(),
        "before_bytes": before, "checksum": checksum}))


main()
