"""The media of the benchmarks, made once with ffmpeg and kept in the cache folder."""
import os
import shutil
import struct
from collections import namedtuple

from floor import Continue, Get
from shared import CACHE, ffmpeg, make_file, make_folder, output_of

SECONDS = 20
RATE = 30
GOP = 60

# name: what the table says; path: relative to the server's root; plan: stages of requests for floor.replay;
# picture_end: bytes of the media resource(s) up to the end of the first picture; decode_files and decode_cut: what to
# join, and where to cut it, to get a file that ends with that picture.
Source = namedtuple("Source", "name path plan picture_end decode_files decode_cut")
Media = namedtuple("Media", "folder sources describe shape")
Many = namedtuple("Many", "folder lists")

RUNGS = {
    # size, bits a second, peak, RFC 6381 codec strings
    "high": ((720, 1280), 2_500_000, 3_500_000, {"h264": "avc1.64001f", "hevc": "hvc1.1.6.L93.90"}),
    "low": ((360, 640), 1_000_000, 1_400_000, {"h264": "avc1.64001f", "hevc": "hvc1.1.6.L90.90"}),
    "lowest": ((216, 384), 400_000, 560_000, {"h264": "avc1.640015", "hevc": "hvc1.1.6.L60.90"}),
}


def encode(target, codec, rung):
    """A slow zoom under noise: detail everywhere, and a first key frame of about 80 kB at 2.5 Mbit/s."""
    (width, height), bits, peak, _ = RUNGS[rung]
    picture = f"mandelbrot=s={width}x{height}:r={RATE}:end_pts={SECONDS * RATE},trim=duration={SECONDS},noise=alls=10:allf=t:all_seed=7"
    common = ["-b:v", bits, "-maxrate", peak, "-bufsize", 2 * bits, "-pix_fmt", "yuv420p", "-g", GOP]
    if codec == "h264":
        coder = ["-c:v", "libx264", "-preset", "medium", "-profile:v", "high", "-bf", 3,
                 "-x264-params", f"keyint={GOP}:min-keyint={GOP}:scenecut=0:open-gop=0"]
    else:
        coder = ["-c:v", "libx265", "-preset", "fast", "-tag:v", "hvc1",
                 "-x265-params", f"keyint={GOP}:min-keyint={GOP}:scenecut=0:open-gop=0:bframes=3:log-level=error"]
    ffmpeg("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=frequency=330:sample_rate=48000:duration={SECONDS}",
           *coder, *common, "-c:a", "aac", "-b:a", "128k", "-ac", 2, "-threads", 1, target)


def encoded(codec, rung):
    return make_file(CACHE / f"{codec}-{rung}.mp4", lambda file: encode(file, codec, rung))


def make(codec, rungs, audio):
    name = f"{codec}-{rungs}{'-audio' if audio else ''}"
    folder = make_folder(CACHE / name, lambda folder: build(folder, codec, list(RUNGS)[:rungs], audio))
    first = first_picture(folder / "hls-fmp4/high", "init.mp4", "segment-0.m4s")
    shape = f"{'with' if audio else 'no'} sound, {rungs} rung{'s' if rungs > 1 else ''}"
    describe = (
        f"720×1280 {'H.264' if codec == 'h264' else 'HEVC'}, {RATE} fps, {SECONDS} s, 2.5 Mbit/s, closed GOPs and segments of 2 s, "
        f"{shape}; first key frame {first.size:,} bytes"
    )
    return Media(folder, describe_sources(folder), describe, shape)


def hls(source, folder, kind, *streams, seconds=2):
    """A media playlist and its segments, cut from one encode: `ts` or `fmp4`."""
    folder.mkdir(parents=True)
    how = ["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "init.mp4"] if kind == "fmp4" else []
    ffmpeg("-i", source, *streams, "-c", "copy", "-f", "hls", "-hls_time", seconds, "-hls_list_size", 0, "-hls_playlist_type", "vod",
           *how, "-hls_segment_filename", "segment-%d." + ("m4s" if kind == "fmp4" else "ts"), "index.m3u8", cwd=folder)


def build(folder, codec, rungs, audio):
    files = {rung: encoded(codec, rung) for rung in rungs}
    sound = ["-map", "0:a"] if audio else []
    for rung, file in files.items():
        hls(file, folder / "hls-ts" / rung, "ts", "-map", "0:v", *sound)
        hls(file, folder / "hls-fmp4" / rung, "fmp4", "-map", "0:v")
    if audio:
        hls(files["high"], folder / "hls-fmp4/audio", "fmp4", "-map", "0:a")
    multivariant(folder / "hls-ts/master.m3u8", rungs, codec, "muxed" if audio else None)
    multivariant(folder / "hls-fmp4/master.m3u8", rungs, codec, "apart" if audio else None)

    (folder / "dash").mkdir()
    inputs, maps = [], []
    for index, rung in enumerate(rungs):
        inputs += ["-i", files[rung]]
        maps += ["-map", f"{index}:v", f"-b:v:{index}", RUNGS[rung][1]]
    sets = "id=0,streams=" + ",".join(str(index) for index in range(len(rungs)))
    if audio:
        maps += ["-map", "0:a"]
        sets += f" id=1,streams={len(rungs)}"
    ffmpeg(*inputs, *maps, "-c", "copy", "-f", "dash", "-seg_duration", 2, "-use_timeline", 0, "-adaptation_sets", sets,
           "-init_seg_name", "init-$RepresentationID$.mp4", "-media_seg_name", "segment-$RepresentationID$-$Number$.m4s",
           "manifest.mpd", cwd=folder / "dash")
    progressive = ["-i", files["high"], "-map", "0:v", *sound, "-c", "copy"]
    ffmpeg(*progressive, "-movflags", "+faststart", folder / "progressive.mp4")
    ffmpeg(*progressive, folder / "moov-last.mp4")


def multivariant(target, rungs, codec, audio):
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    if audio == "apart":
        lines.append('#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="Sound",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio/index.m3u8"')
    for rung in rungs:
        (width, height), bits, peak, codecs = RUNGS[rung]
        names = codecs[codec] + (",mp4a.40.2" if audio else "")
        group = ',AUDIO="sound"' if audio == "apart" else ""
        # The average is declared as BANDWIDTH too: the choice of a rung is not what is measured here.
        lines.append(f'#EXT-X-STREAM-INF:BANDWIDTH={bits},AVERAGE-BANDWIDTH={bits},CODECS="{names}",RESOLUTION={width}x{height},FRAME-RATE={RATE}{group}')
        lines.append(f"{rung}/index.m3u8")
    target.write_text("\n".join(lines) + "\n")


def make_short(folder):
    base = make("h264", 1, False).folder
    ffmpeg("-i", base / "progressive.mp4", "-t", 4, "-c", "copy", "-movflags", "+faststart", folder / "clip.mp4")
    hls(folder / "clip.mp4", folder / "hls", "fmp4")


def make_many(count):
    """`count` names for the first four seconds of the same material, as HLS-fMP4 and as progressive MP4."""
    short, folder = make_folder(CACHE / "short", make_short), CACHE / "many"
    lists = {"HLS-fMP4, 4 s": [], "MP4, 4 s": []}
    for number in range(count):
        link(short / "clip.mp4", folder / f"mp4/clip-{number:03}.mp4")
        lists["MP4, 4 s"].append(f"mp4/clip-{number:03}.mp4")
        for file in (short / "hls").iterdir():
            link(file, folder / f"hls/{number:03}" / file.name.replace("index", f"clip-{number:03}"))
        lists["HLS-fMP4, 4 s"].append(f"hls/{number:03}/clip-{number:03}.m3u8")
    return Many(folder, lists)


def link(source, target):
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)


# --- Where the first picture ends ---

Picture = namedtuple("Picture", "offset size")


def describe_sources(folder):
    fmp4 = first_picture(folder / "hls-fmp4/high", "init.mp4", "segment-0.m4s")
    fmp4_end = fmp4.offset + fmp4.size
    dash = first_picture(folder / "dash", "init-0.mp4", "segment-0-1.m4s")
    dash_end = dash.offset + dash.size
    segment = folder / "hls-ts/high/segment-0.ts"
    ts_end = first_picture_in_ts(segment.read_bytes())
    progressive = folder / "progressive.mp4"
    first = first_picture(folder, None, "progressive.mp4")
    first_end = first.offset + first.size
    last = folder / "moov-last.mp4"
    tail = first_picture(folder, None, "moov-last.mp4")
    tail_end = tail.offset + tail.size
    moov, head = moov_place(last)
    init = (folder / "hls-fmp4/high/init.mp4").stat().st_size
    dash_init = (folder / "dash/init-0.mp4").stat().st_size
    # A and B are connections. A stage starts when the one before it is complete; the requests of a stage go out together.
    return [
        Source("HLS-TS", "hls-ts/master.m3u8", [
            [Get("A", "hls-ts/master.m3u8")],
            [Get("A", "hls-ts/high/index.m3u8")],
            [Get("A", "hls-ts/high/segment-0.ts", until=ts_end)],
        ], ts_end, [segment], ts_end),
        Source("HLS-fMP4", "hls-fmp4/master.m3u8", [
            [Get("A", "hls-fmp4/master.m3u8")],
            [Get("A", "hls-fmp4/high/index.m3u8")],
            [Get("A", "hls-fmp4/high/init.mp4"), Get("B", "hls-fmp4/high/segment-0.m4s", until=fmp4_end)],
        ], init + fmp4_end, [folder / "hls-fmp4/high/init.mp4", folder / "hls-fmp4/high/segment-0.m4s"], init + fmp4_end),
        Source("DASH", "dash/manifest.mpd", [
            [Get("A", "dash/manifest.mpd")],
            [Get("A", "dash/init-0.mp4"), Get("B", "dash/segment-0-1.m4s", until=dash_end)],
        ], dash_init + dash_end, [folder / "dash/init-0.mp4", folder / "dash/segment-0-1.m4s"], dash_init + dash_end),
        Source("MP4", "progressive.mp4", [[Get("A", "progressive.mp4", until=first_end)]], first_end, [progressive], first_end),
        # The header of mdat says where moov is; the samples go on arriving on A while moov is fetched on B.
        Source("MP4, moov last", "moov-last.mp4", [
            [Get("A", "moov-last.mp4", until=head)],
            [Get("B", "moov-last.mp4", first_byte=moov), Continue("A", until=tail_end)],
        ], tail_end + last.stat().st_size - moov, [last], None),
    ]


def first_picture(folder, init, segment):
    """Offset in the segment, and size, of the first video sample, from ffprobe's view of the joined files."""
    path = folder / segment
    skipped = 0
    if init:
        skipped = (folder / init).stat().st_size
        path = folder / ".joined"
        path.write_bytes((folder / init).read_bytes() + (folder / segment).read_bytes())
    text = output_of("ffprobe", "-v", "error", "-select_streams", "v:0", "-read_intervals", "%+#1", "-show_entries", "packet=pos,size",
                     "-of", "default=nw=1", path)
    if init:
        path.unlink()
    fields = dict(line.split("=") for line in text.splitlines() if "=" in line)
    return Picture(int(fields["pos"]) - skipped, int(fields["size"]))


def first_picture_in_ts(data):
    """The end of the last transport packet of the first video PES (ISO/IEC 13818-1 2.4.3)."""
    video, started, end = None, False, 0
    for at in range(0, len(data) - 187, 188):
        packet = data[at : at + 188]
        pid = (packet[1] & 0x1F) << 8 | packet[2]
        starts = packet[1] & 0x40
        body = 4 + (1 + packet[4] if packet[3] & 0x20 else 0)
        if starts and packet[3] & 0x10 and packet[body : body + 3] == b"\0\0\1" and packet[body + 3] & 0xF0 == 0xE0:
            if started:
                return end
            video, started = pid, True
        if pid == video:
            end = at + 188
    return end


def moov_place(path):
    """Where moov starts, and the end of the mdat header that tells it, for a file whose moov is last."""
    data = path.read_bytes()
    at, head = 0, None
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", data[at + 8 : at + 16])[0], 16
        if kind == b"mdat":
            head = at + header
        if kind == b"moov":
            return at, head
        at += size
    raise SystemExit(f"benchmark: no moov in {path}")
