#!/usr/bin/env python3
"""Edits that no encoder or muxer makes: display matrices, parameter sets, damage. Standard library only.

    mutate.py matrix   IN OUT DEGREES|mirror    write the display matrix of every video track
    mutate.py no-vui   IN OUT                   H.264: drop the SPS's VUI, and with it bitstream_restriction
    mutate.py inband   IN OUT                   fragmented MP4: empty avcC/hvcC, tag avc3/hev1 (sets stay in band)
    mutate.py size     IN OUT WIDTH HEIGHT      set the size in the sample entry and tkhd, leave the SPS
    mutate.py sps-size IN OUT WIDTH HEIGHT      H.264: set the coded size in the SPS, the sample entry and tkhd
    mutate.py sps-void IN OUT                   H.264: a cropping rectangle that leaves no picture
    mutate.py damage   IN OUT FIRST LAST        flip bytes in the slices of video packets FIRST...LAST (decode order)
    mutate.py lengths  IN OUT INDEX             MP4: give the first NAL unit of packet INDEX a length beyond the file
    mutate.py undated  IN OUT                   MP4: zero in place of the times of creation
    mutate.py cut      IN OUT ratio BOX         keep the bytes up to `ratio` of the way through top-level box BOX
    mutate.py annexb-cut  IN OUT sei|slice N    H.264 byte stream: begin with the Nth such unit, counted from 0
    mutate.py tracks-last IN OUT                Matroska: put Tracks behind the clusters, where SeekHead names it
    mutate.py sidx     IN                       print the byte range of the sidx as FIRST-LAST, and of what precedes it

Edits that change the length of `moov` are right only where no chunk offset points behind it: fragmented files and
files whose moov comes last.
"""
import json
import struct
import subprocess
import sys

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl"}
VIDEO_ENTRIES = {b"avc1", b"avc3", b"hvc1", b"hev1"}


def boxes(data, start, end):
    """(type, offset, size, header length) of each box in data[start:end]."""
    at = start
    while at + 8 <= end:
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", data[at + 8 : at + 16])[0], 16
        elif size == 0:
            size = end - at
        yield kind, at, size, header
        at += size


def rebuild(data, edit):
    """Walk the box tree; edit(kind, body, path) returns a new body, or None to keep the old one."""

    def walk(body, path):
        out = bytearray()
        for kind, at, size, header in boxes(body, 0, len(body)):
            inner = body[at + header : at + size]
            here = path + [kind]
            if kind in CONTAINERS:
                inner = walk(inner, here)
            elif kind == b"stsd":
                inner = inner[:8] + walk(inner[8:], here)
            elif kind in VIDEO_ENTRIES:
                inner = inner[:78] + walk(inner[78:], here)
            replaced = edit(kind, inner, here)
            inner = inner if replaced is None else replaced
            if header == 16:
                out += struct.pack(">I4sQ", 1, kind, len(inner) + 16) + inner
            else:
                out += struct.pack(">I4s", len(inner) + 8, kind) + inner
        return bytes(out)

    return walk(data, [])


# --- H.264 sequence parameter sets (ITU-T H.264 7.3.2.1.1) ---


class Bits:
    def __init__(self, nal):
        raw = bytearray()
        zeros = 0
        for byte in nal:
            if zeros >= 2 and byte == 3:
                zeros = 0
                continue
            zeros = zeros + 1 if byte == 0 else 0
            raw.append(byte)
        self.text = "".join(f"{byte:08b}" for byte in raw)
        self.at = 0

    def u(self, count):
        value = int(self.text[self.at : self.at + count] or "0", 2)
        self.at += count
        return value

    def ue(self):
        zeros = 0
        while self.text[self.at] == "0":
            zeros += 1
            self.at += 1
        return self.u(zeros + 1) - 1


def ue(value):
    text = f"{value + 1:b}"
    return "0" * (len(text) - 1) + text


def pack(text):
    """Bits to a NAL unit: stop bit, alignment, emulation prevention."""
    text += "1"
    text += "0" * (-len(text) % 8)
    out, zeros = bytearray(), 0
    for index in range(0, len(text), 8):
        byte = int(text[index : index + 8], 2)
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out)


def rewrite_sps(nal, width=None, height=None, void=False, vui=True):
    bits = Bits(nal)
    bits.u(8)
    profile = bits.u(8)
    bits.u(16)
    bits.ue()
    if profile in (100, 110, 122, 244):
        if bits.ue() == 3:
            bits.u(1)
        bits.ue(), bits.ue(), bits.u(1)
        assert bits.u(1) == 0, "scaling matrices are not handled"
    bits.ue()
    order = bits.ue()
    if order == 0:
        bits.ue()
    assert order != 1
    bits.ue(), bits.u(1)
    head = bits.text[: bits.at]
    columns, rows = bits.ue() + 1, bits.ue() + 1
    flags = bits.at
    if bits.u(1) == 0:
        bits.u(1)
    bits.u(1)
    flags = bits.text[flags : bits.at]
    crop = bits.at
    if bits.u(1):
        for _ in range(4):
            bits.ue()
    crop = bits.text[crop : bits.at]
    tail = bits.text[bits.at :].rstrip("0")[:-1]
    if width:
        columns, rows, crop = (width + 15) // 16, (height + 15) // 16, "0"
    if void:
        crop = "1" + ue(0) + ue(columns * 8) + ue(0) + ue(rows * 8)
    return pack(head + ue(columns - 1) + ue(rows - 1) + flags + crop + (tail if vui else "0"))


def rewrite_avcc(body, **changes):
    assert body[5] & 31 == 1
    length = struct.unpack(">H", body[6:8])[0]
    sps = rewrite_sps(body[8 : 8 + length], **changes)
    return body[:6] + struct.pack(">H", len(sps)) + sps + body[8 + length :]


# --- Edits ---


def matrix(data, turn):
    one, zero = 1 << 16, 0
    rows = {
        "0": (one, zero, zero, one),
        "90": (zero, one, -one, zero),
        "180": (-one, zero, zero, -one),
        "270": (zero, -one, one, zero),
        "mirror": (-one, zero, zero, one),
    }[turn]

    def edit(kind, body, path):
        if kind != b"tkhd":
            return None
        at = 40 if body[0] == 0 else 52
        width, height = struct.unpack(">II", body[at + 36 : at + 44])
        if width == 0:
            return None
        a, b, c, d = rows
        # The translation brings the turned picture back to the origin, as phones write it.
        x = -min(0, a * width + c * height) >> 16
        y = -min(0, b * width + d * height) >> 16
        return body[:at] + struct.pack(">9i", a, b, 0, c, d, 0, x, y, 1 << 30) + body[at + 36 :]

    return rebuild(data, edit)


def size(data, width, height, sps=False):
    def edit(kind, body, path):
        if kind in VIDEO_ENTRIES:
            return body[:24] + struct.pack(">HH", width, height) + body[28:]
        if kind == b"tkhd":
            at = 76 if body[0] == 0 else 88
            if body[at : at + 8] != bytes(8):
                return body[:at] + struct.pack(">HHHH", width, 0, height, 0) + body[at + 8 :]
        if kind == b"avcC" and sps:
            return rewrite_avcc(body, width=width, height=height)
        return None

    return rebuild(data, edit)


def inband(data):
    def edit(kind, body, path):
        if kind == b"avcC":
            return body[:5] + b"\xe0\x00" + body[-4:] if body[1] >= 100 else body[:5] + b"\xe0\x00"
        if kind == b"hvcC":
            return body[:22] + b"\x00"
        return None

    data = rebuild(data, edit)
    return data.replace(b"avc1\0\0\0\0\0\0\0\1", b"avc3\0\0\0\0\0\0\0\1").replace(
        b"hvc1\0\0\0\0\0\0\0\1", b"hev1\0\0\0\0\0\0\0\1"
    )


def packets(path):
    text = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_packets", "-of", "json", path],
        check=True, capture_output=True, text=True,
    ).stdout
    return [(int(p["pos"]), int(p["size"])) for p in json.loads(text)["packets"]]


def is_slice(header, hevc):
    return (header >> 1) & 63 < 32 if hevc else header & 31 in (1, 5)


def damage(data, path, first, last):
    out = bytearray(data)
    hevc = b"hvcC" in data
    spots = packets(path)
    for index in range(first, last + 1):
        at = spots[index][0]
        if path.endswith(".ts"):
            # Up to the next picture, payload bytes only: the transport headers stay right.
            end = spots[index + 1][0]
            for packet in range(at + 188, end, 188):
                if out[packet + 1] & 0x5F == out[at + 1] & 0x1F and out[packet + 2] == out[at + 2]:
                    for offset in range(packet + 40, packet + 188, 29):
                        out[offset] ^= 0x5A
        else:
            # Only slices, and behind their headers, so that it is the entropy decoder that meets the damage.
            end = at + spots[index][1]
            while at + 4 < end:
                length = struct.unpack(">I", out[at : at + 4])[0]
                if is_slice(out[at + 4], hevc):
                    for offset in range(at + 24, at + 4 + length, 11):
                        out[offset] ^= 0x5A
                at += 4 + length
    return bytes(out)


def lengths(data, path, index):
    at = packets(path)[index][0]
    return data[:at] + b"\x7f\xff\xff\xf0" + data[at + 4 :]


def undated(data):
    def edit(kind, body, _):
        if kind in (b"mvhd", b"tkhd", b"mdhd"):
            size = 16 if body[0] == 1 else 8
            return body[:4] + bytes(size) + body[4 + size :]
        return None

    return rebuild(data, edit)


def cut(data, ratio, name):
    for kind, at, length, header in boxes(data, 0, len(data)):
        if kind == name.encode():
            return data[: at + header + int((length - header) * ratio)]
    raise SystemExit(f"mutate: no box {name}")


def annexb_cut(data, kind, number):
    starts = [at for at in range(len(data) - 3) if data[at : at + 3] == b"\0\0\1"]
    wanted = {"sei": {6}, "slice": {1}}[kind]
    at = [start for start in starts if data[start + 3] & 31 in wanted][number]
    # If parameter sets directly precede the picture, cuts before them.
    before = [start for start in starts if start < at]
    while kind == "sei" and before and data[before[-1] + 3] & 31 in {7, 8}:
        at = before.pop()
    return b"\0" + data[at:]


def vint(data, at):
    """Returns the value (without its length marker) and the width of the EBML number at `at`."""
    width = 1
    while not data[at] & 0x80 >> width - 1:
        width += 1
    return int.from_bytes(data[at : at + width], "big") & (1 << 7 * width) - 1, width


def ebml(data, at, end):
    """Yields (id, whole element) for each element in data[at:end]."""
    while at < end:
        _, id_width = vint(data, at)
        size, width = vint(data, at + id_width)
        stop = at + id_width + width + size
        yield data[at : at + id_width].hex(), data[at:stop]
        at = stop


def element(name, body):
    return bytes.fromhex(name) + (1 << 56 | len(body)).to_bytes(8, "big") + body


def tracks_last(data, void=0):
    head, segment = [whole for _, whole in ebml(data, 0, len(data))][:2]
    size, width = vint(segment, 4)
    parts = list(ebml(segment, 4 + width, 4 + width + size))
    keep = [whole for name, whole in parts if name in ("1549a966", "1f43b675")]
    tracks = [whole for name, whole in parts if name == "1654ae6b"]

    def seek_head(position):
        entry = element("53ab", bytes.fromhex("1654ae6b")) + element("53ac", position.to_bytes(8, "big"))
        return element("114d9b74", element("4dbb", entry))

    if void:
        keep.insert(0, element("ec", bytes(void)))
    position = len(seek_head(0)) + sum(map(len, keep))
    return head + element("18538067", seek_head(position) + b"".join(keep + tracks))


def leading(data, count):
    """Puts bytes in front that are no packets of a transport stream."""
    state, before = 1, bytearray()
    while len(before) < count:
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        value = state >> 16 & 0xFF
        if value not in (0, 0x47):
            before.append(value)
    return bytes(before) + data


def timed(data):
    """Puts a time stamp in front of each packet of a transport stream, as BDAV has it."""
    return b"".join((at // 188).to_bytes(4, "big") + data[at : at + 188] for at in range(0, len(data), 188))


def tagged(data, ticks):
    """Packed audio of HLS: an ID3 tag with the time of the first sample in 90 kHz (RFC 8216 3.4)."""
    value = b"com.apple.streaming.transportStreamTimestamp\0" + struct.pack(">Q", ticks)
    frame = b"PRIV" + struct.pack(">IH", len(value), 0) + value
    return b"ID3\4\0\0" + bytes([0, 0, len(frame) >> 7, len(frame) & 127]) + frame + data


def main(arguments):
    command, source = arguments[0], arguments[1]
    with open(source, "rb") as file:
        data = file.read()
    if command == "sidx":
        for kind, at, length, _ in boxes(data, 0, len(data)):
            if kind == b"sidx":
                print(f"{at}-{at + length - 1} 0-{at - 1}")
                return
        raise SystemExit(f"mutate: no sidx in {source}")
    target, rest = arguments[2], arguments[3:]
    avcc = lambda **changes: rebuild(
        data, lambda kind, body, _: rewrite_avcc(body, **changes) if kind == b"avcC" else None
    )
    out = {
        "matrix": lambda: matrix(data, rest[0]),
        "no-vui": lambda: avcc(vui=False),
        "inband": lambda: inband(data),
        "size": lambda: size(data, int(rest[0]), int(rest[1])),
        "sps-size": lambda: size(data, int(rest[0]), int(rest[1]), sps=True),
        "sps-void": lambda: avcc(void=True),
        "damage": lambda: damage(data, source, int(rest[0]), int(rest[1])),
        "lengths": lambda: lengths(data, source, int(rest[0])),
        "undated": lambda: undated(data),
        "cut": lambda: cut(data, float(rest[0]), rest[1]),
        "annexb-cut": lambda: annexb_cut(data, rest[0], int(rest[1])),
        "tracks-last": lambda: tracks_last(data, int(rest[0]) if rest else 0),
        "leading": lambda: leading(data, int(rest[0])),
        "timed": lambda: timed(data),
        "tagged": lambda: tagged(data, round(float(rest[0]) * 90000)),
    }[command]()
    with open(target, "wb") as file:
        file.write(out)


main(sys.argv[1:])
