"""The items of the feed, made once with ffmpeg and kept in the cache folder: seven short vertical videos in nine packagings."""
from collections import namedtuple

import shared
from material import hls
from shared import ffmpeg, make_folder

CACHE = shared.CACHE / "players"
COUNT, SECONDS, RATE, GOP = 7, 20, 30, 60

# The highest first, as most packagers write them.
RUNGS = [
    # name, width, height, bits a second
    ("high", 720, 1280, 2_500_000),
    ("middle", 540, 960, 1_200_000),
    ("low", 360, 640, 600_000),
]
SOUND = 128_000
# A zoom into another part of the Mandelbrot set for each item: frames of other sizes.
PLACES = [(-0.7436, -0.1318), (-1.25066, 0.02012), (-0.16, 1.0405), (0.2753, -0.0064), (-0.748, 0.1), (-1.7687, 0.0017), (-0.0452, 0.9868)]

# path: of the URL to open, within the item's folder.
Packaging = namedtuple("Packaging", "path kind seconds rungs")
PACKAGINGS = {
    "ts-2s": Packaging("index.m3u8", "ts", 2, 1),
    "ts-6s": Packaging("index.m3u8", "ts", 6, 1),
    "ts-2s-3r": Packaging("index.m3u8", "ts", 2, 3),
    "ts-6s-3r": Packaging("index.m3u8", "ts", 6, 3),
    "fmp4-2s": Packaging("index.m3u8", "fmp4", 2, 1),
    "fmp4-6s": Packaging("index.m3u8", "fmp4", 6, 1),
    "fmp4-2s-3r": Packaging("index.m3u8", "fmp4", 2, 3),
    "fmp4-6s-3r": Packaging("index.m3u8", "fmp4", 6, 3),
    "mp4": Packaging("video.mp4", "mp4", SECONDS, 1),
}


def encode(number, folder):
    """The rungs of an item, with sound: closed GOPs of 2 s, so that segments of 2 s and of 6 s are cut from one encode."""
    x, y = PLACES[number]
    picture = (f"mandelbrot=s=720x1280:r={RATE}:start_x={x}:start_y={y}:end_pts={SECONDS * RATE},trim=duration={SECONDS},"
               f"noise=alls=10:allf=t:all_seed={number}")
    scaled = ";".join(f"[v{name}]scale={width}:{height}[{name}]" for name, width, height, _ in RUNGS)
    split = f"[0:v]split={len(RUNGS)}" + "".join(f"[v{name}]" for name, *_ in RUNGS)
    outputs = []
    for name, _, _, bits in RUNGS:
        outputs += ["-map", f"[{name}]", "-map", "1:a", "-c:v", "libx264", "-preset", "veryfast", "-profile:v", "high", "-bf", 3,
                    "-pix_fmt", "yuv420p", "-b:v", bits, "-maxrate", bits * 1.4, "-bufsize", 2 * bits, "-g", GOP,
                    "-x264-params", f"keyint={GOP}:min-keyint={GOP}:scenecut=0:open-gop=0",
                    "-c:a", "aac", "-b:a", SOUND, "-ac", 2, folder / f"{name}.mp4"]
    ffmpeg("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=frequency={300 + 40 * number}:sample_rate=48000:duration={SECONDS}",
           "-filter_complex", f"{split};{scaled}", *outputs)


def package(encodes, folder, packaging):
    """One rung is a media playlist, sound muxed. Three rungs have a multivariant playlist; the sound is muxed in TS, apart in fMP4."""
    if packaging.kind == "mp4":
        folder.mkdir(parents=True)
        ffmpeg("-i", encodes / "high.mp4", "-c", "copy", "-movflags", "+faststart", folder / packaging.path)
        return
    if packaging.rungs == 1:
        hls(encodes / "high.mp4", folder, packaging.kind, seconds=packaging.seconds)
        return
    apart = packaging.kind == "fmp4"
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    if apart:
        hls(encodes / "high.mp4", folder / "audio", packaging.kind, "-map", "0:a", seconds=packaging.seconds)
        lines.append('#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="Sound",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio/index.m3u8"')
    for name, width, height, bits in RUNGS:
        hls(encodes / f"{name}.mp4", folder / name, packaging.kind, *(["-map", "0:v"] if apart else []), seconds=packaging.seconds)
        lines.append(f'#EXT-X-STREAM-INF:BANDWIDTH={int((bits + SOUND) * 1.1)},AVERAGE-BANDWIDTH={bits + SOUND},'
                     f'CODECS="avc1.64001f,mp4a.40.2",RESOLUTION={width}x{height},FRAME-RATE={RATE}' + (',AUDIO="sound"' if apart else ""))
        lines.append(f"{name}/index.m3u8")
    (folder / packaging.path).write_text("\n".join(lines) + "\n")


def make():
    """The folder that has PACKAGING/itemN/…, and PACKAGING/long/…, an item of two minutes."""
    return make_folder(CACHE / "media", build)


def build(media):
    def repeat(folder):
        for name, *_ in RUNGS:
            ffmpeg("-stream_loop", 120 // SECONDS - 1, "-i", CACHE / "encodes" / "item0" / f"{name}.mp4", "-c", "copy", folder / f"{name}.mp4")

    encodes = [make_folder(CACHE / "encodes" / f"item{number}", lambda folder: encode(number, folder)) for number in range(COUNT)]
    for source in (*encodes, make_folder(CACHE / "encodes" / "long", repeat)):
        for name, packaging in PACKAGINGS.items():
            package(source, media / name / source.name, packaging)
