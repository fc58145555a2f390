#!/usr/bin/env python3
"""Makes transport streams that no muxer writes from the pictures of an MP4 file (ISO/IEC 13818-1).

    transport.py IN.mp4 OUT.ts [--and IN.mp4] [--pes LAYOUT] [--lengths] [EDIT...]

--and appends the pictures of another file.

LAYOUT says where PES packets end:
    at       with each access unit
    inside   in the middle of each access unit, and with it
    after    seven bytes into the next access unit
    two      with every second access unit
    slices   with each slice
--lengths states PES_packet_length, which video may leave at 0.

EDITs change the access units first:
    once     parameter sets only before the first picture
    late     no parameter sets before the second key picture
    sei      a user data SEI before the first slice, filler data (H.264) or a suffix SEI (HEVC) after the last
    zeros    zero bytes after each access unit
    noaud    no access unit delimiters
    matrices the scaling matrices of the PPS in the SPS, and none in the PPS (H.264)
"""
import json
import re
import subprocess
import sys

CLOCK = 90000
VIDEO, MAP = 0x100, 0x1000


class Stream:
    def __init__(self, path):
        show = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-of", "json", "-show_entries"]
        run = lambda what: json.loads(subprocess.run(show + [what, path], check=True, capture_output=True).stdout)
        self.codec = run("stream=codec_name")["streams"][0]["codec_name"]
        self.hevc = self.codec == "hevc"
        times = run("packet=pts_time,dts_time")["packets"]
        filters = "hevc_mp4toannexb" if self.hevc else "h264_mp4toannexb"
        data = subprocess.run(
            ["ffmpeg", "-v", "error", "-i", path, "-map", "0:v:0", "-c", "copy", "-bsf:v", filters, "-f", self.codec, "-"],
            check=True, capture_output=True).stdout
        units = [b"" + u.rstrip(b"\0") for u in re.split(b"\0\0\1", data)[1:]]
        self.pictures = []
        for unit in units:
            if not self.pictures or self.begins(unit, self.pictures[-1]):
                self.pictures.append([])
            self.pictures[-1].append(unit)
        assert len(self.pictures) == len(times), (len(self.pictures), len(times))
        self.times = [(float(t["pts_time"]), float(t["dts_time"])) for t in times]

    def kind(self, unit):
        return unit[0] >> 1 & 63 if self.hevc else unit[0] & 31

    def is_slice(self, unit):
        return self.kind(unit) < 32 if self.hevc else 1 <= self.kind(unit) <= 5

    def is_set(self, unit):
        return self.kind(unit) in ((32, 33, 34) if self.hevc else (7, 8))

    def is_key(self, picture):
        return any(16 <= self.kind(u) <= 23 if self.hevc else self.kind(u) == 5 for u in picture if self.is_slice(u))

    def begins(self, unit, picture):
        if not any(self.is_slice(u) for u in picture):
            return False
        if not self.is_slice(unit):
            return self.kind(unit) in ((32, 33, 34, 35, 39) if self.hevc else (6, 7, 8, 9))
        return unit[2 if self.hevc else 1] & 0x80 != 0


def join(first, second):
    shift = max(p for p, _ in first.times) + 0.04 - second.times[0][0]
    delay = first.times[0][0] - first.times[0][1]
    first.pictures += second.pictures
    first.times += [(p + shift, d + shift) for p, d in second.times]
    assert delay >= 0


def edit(stream, what):
    keys = 0
    for number, picture in enumerate(stream.pictures):
        keys += stream.is_key(picture)
        if what == "once" and number > 0 or what == "late" and keys < 2:
            picture[:] = [u for u in picture if not stream.is_set(u)]
        if what == "noaud":
            picture[:] = [u for u in picture if stream.kind(u) != (35 if stream.hevc else 9)]
        if what == "sei":
            text = bytes([5, 20]) + b"reel-fixture-sei" + b"text" + b"\x80"
            first = next(i for i, u in enumerate(picture) if stream.is_slice(u))
            picture.insert(first, (b"\x4e\x01" if stream.hevc else b"\x06") + text)
            picture.append(b"\x50\x01" + text if stream.hevc else b"\x0c" + b"\xff" * 40 + b"\x80")
        if what == "matrices":
            move_matrices(picture)
        if what == "zeros":
            picture[-1] = picture[-1] + bytes(5 + number * 7 % 90)


class Bits:
    """Reads an RBSP bit by bit (ISO/IEC 14496-10 clause 7.3)."""

    def __init__(self, unit):
        data = unit.replace(b"\0\0\3", b"\0\0")
        self.text = "".join(f"{byte:08b}" for byte in data).rstrip("0")[:-1]
        self.at = 0

    def u(self, count):
        self.at += count
        return int(self.text[self.at - count:self.at], 2)

    def ue(self):
        zeros = self.text.index("1", self.at) - self.at
        self.at += zeros
        return self.u(zeros + 1) - 1

    def se(self):
        value = self.ue()
        return (value + 1) // 2 if value & 1 else -(value // 2)

    def scaling_lists(self, count):
        for index in range(count):
            last = following = 8
            for _ in range((16 if index < 6 else 64) if self.u(1) else 0):
                if following:
                    following = (last + self.se()) % 256
                last = following or last


def unit_of(text):
    text += "1"
    text += "0" * (-len(text) % 8)
    data = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
    return re.sub(rb"\0\0(?=[\x00-\x03])", b"\0\0\x03", data)


def move_matrices(picture):
    """7.3.2.1.1 and 7.3.2.2. Lists that are left out are inferred by the same rule in both (Table 7-2)."""
    sps = next((i for i, u in enumerate(picture) if u[0] & 31 == 7), None)
    if sps is None:
        return
    pps = next(i for i, u in enumerate(picture) if u[0] & 31 == 8)
    bits = Bits(picture[pps])
    bits.u(8), bits.ue(), bits.ue(), bits.u(2)
    assert bits.ue() == 0
    bits.ue(), bits.ue(), bits.u(3), bits.se(), bits.se(), bits.se(), bits.u(3)
    assert bits.u(1) and bits.u(1)
    begin = bits.at
    bits.scaling_lists(8)
    lists = bits.text[begin:bits.at]
    picture[pps] = unit_of(bits.text[:begin - 1] + "0" + bits.text[bits.at:])
    bits = Bits(picture[sps])
    bits.u(32), bits.ue()
    assert bits.ue() == 1
    bits.ue(), bits.ue(), bits.u(1)
    assert bits.u(1) == 0
    picture[sps] = unit_of(bits.text[:bits.at - 1] + "1" + lists + bits.text[bits.at:])


def annexb(picture):
    return [b"\0\0\0\1" + picture[0]] + [b"\0\0\1" + u for u in picture[1:]]


def cuts(stream, layout):
    """Returns the bytes, and for each PES packet its end and the picture that gives its timestamp."""
    data, starts, slices = b"", [], []
    for picture in stream.pictures:
        starts.append(len(data))
        for unit, framed in zip(picture, annexb(picture)):
            data += framed
            if stream.is_slice(unit):
                slices.append(len(data))
    ends = starts[1:] + [len(data)]
    if layout == "inside":
        ends = sorted(ends + [(a + b) // 2 for a, b in zip(starts, ends)])
    elif layout == "after":
        ends = [e + 7 for e in ends[:-1]] + [len(data)]
    elif layout == "two":
        ends = [e for i, e in enumerate(ends) if i % 2 == 1 or e == len(data)]
    elif layout == "slices":
        ends = sorted(set(slices[:-1]) | {len(data)})
    packets, begin = [], 0
    for end in ends:
        # The timestamp is that of the first access unit that begins in the packet.
        packets.append((data[begin:end], next((i for i, s in enumerate(starts) if begin <= s < end), None)))
        begin = end
    return packets


def stamp(prefix, ticks):
    ticks %= 1 << 33
    return bytes([prefix << 4 | ticks >> 29 & 14 | 1, ticks >> 22 & 255, ticks >> 14 & 254 | 1, ticks >> 7 & 255, ticks << 1 & 254 | 1])


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 1 << 31 else 0)) & 0xFFFFFFFF
    return value.to_bytes(4, "big")


def section(table, number, body):
    length = 5 + len(body) + 4
    head = bytes([table, 0xB0 | length >> 8, length & 255, number >> 8, number & 255, 0xC1, 0, 0]) + body
    return head + crc(head)


class Writer:
    def __init__(self):
        self.out, self.counters = bytearray(), {}

    def packet(self, pid, payload, begins, clock=None):
        """Writes one packet and returns the bytes that did not fit."""
        field = b""
        if clock is not None:
            field = b"\x10" + (clock << 15 | 0x7E00).to_bytes(6, "big")
        room = 184 - (1 + len(field) if field else 0)
        part = payload[:room]
        if len(part) < 184 - (1 + len(field) if field else 0) and not field:
            field = b"\0" if 184 - len(part) > 1 else b""
            field += b"\xff" * (184 - len(part) - 1 - len(field))
            adaptation = bytes([len(field)]) + field
        elif field:
            field += b"\xff" * (room - len(part))
            adaptation = bytes([len(field)]) + field
        else:
            adaptation = b""
        count = self.counters.get(pid, 0)
        self.counters[pid] = count + 1
        control = (0x30 if adaptation else 0x10) | count & 15
        self.out += bytes([0x47, (0x40 if begins else 0) | pid >> 8, pid & 255, control]) + adaptation + part
        return payload[room:] if len(part) == room else b""

    def tables(self, hevc):
        program = section(0, 1, bytes([0, 1, 0xE0 | MAP >> 8, MAP & 255]))
        kind = 0x24 if hevc else 0x1B
        streams = section(2, 1, bytes([0xE0 | VIDEO >> 8, VIDEO & 255, 0xF0, 0, kind, 0xE0 | VIDEO >> 8, VIDEO & 255, 0xF0, 0]))
        for pid, table in ((0, program), (MAP, streams)):
            self.packet(pid, (b"\0" + table).ljust(184, b"\xff"), True)

    def pes(self, data, times, lengths):
        header = b""
        if times:
            pts, dts = times
            header = stamp(3 if pts != dts else 2, pts) + (stamp(1, dts) if pts != dts else b"")
        flags = {0: 0, 5: 0x80, 10: 0xC0}[len(header)]
        length = 3 + len(header) + len(data)
        length = length if lengths and length < 1 << 16 else 0
        rest = b"\0\0\1\xe0" + length.to_bytes(2, "big") + bytes([0x80, flags, len(header)]) + header + data
        begins = True
        while rest:
            rest = self.packet(VIDEO, rest, begins, times[1] if begins and times else None)
            begins = False


def main(arguments):
    source, target, options = arguments[0], arguments[1], arguments[2:]
    stream, layout, lengths = Stream(source), "at", False
    while options:
        option = options.pop(0)
        if option == "--and":
            join(stream, Stream(options.pop(0)))
        elif option == "--pes":
            layout = options.pop(0)
        elif option == "--lengths":
            lengths = True
        elif option in ("once", "late", "sei", "zeros", "noaud", "matrices"):
            edit(stream, option)
        else:
            sys.exit("transport.py: no option " + option)
    writer = Writer()
    writer.tables(stream.hevc)
    for data, picture in cuts(stream, layout):
        times = None
        if picture is not None:
            times = tuple(round((t + 1.4) * CLOCK) for t in stream.times[picture])
        writer.pes(data, times, lengths)
    with open(target, "wb") as out:
        out.write(writer.out)


if __name__ == "__main__":
    main(sys.argv[1:])
