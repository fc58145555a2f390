#!/usr/bin/env python3
"""Makes an H.264 byte stream whose frames are pairs of field pictures (field_pic_flag 1), which x264 does not write.

    fields.py OUT.h264 [REFERENCES [untimed|frames]]

24 frames of 16x32, 50 fields a second, noise, every macroblock I_PCM. Every eighth frame begins with an IDR picture. With one
REFERENCE frame, libavformat's muxers take each field for a key frame; with two, only those that begin with an IDR picture.
With "untimed", the stream states no rate; with "frames", it states none and its pictures are whole frames.
"""
import random
import sys

WIDTH, HEIGHT, FRAMES, GROUP = 16, 32, 24, 8


class Bits:
    def __init__(self):
        self.bits = []

    def u(self, count, value):
        self.bits += [value >> n & 1 for n in range(count - 1, -1, -1)]

    def ue(self, value):
        length = (value + 1).bit_length()
        self.u(length - 1, 0)
        self.u(length, value + 1)

    def align(self):
        self.bits += [0] * (-len(self.bits) % 8)

    def bytes(self):
        self.u(1, 1)
        self.align()
        return bytes(int("".join(map(str, self.bits[i : i + 8])), 2) for i in range(0, len(self.bits), 8))


def unit(header, payload):
    out, zeros = bytearray([header]), 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return b"\0\0\0\1" + bytes(out)


def sequence(references, kind):
    s = Bits()
    s.u(24, 77 << 16 | 30)  # Main, level 3
    for value in (0, 0, 0, 4, references):  # id, frame_num of 4 bits, order of type 0 in 8 bits
        s.ue(value)
    s.u(1, 0)
    s.ue(WIDTH // 16 - 1)
    s.ue(HEIGHT // (16 if kind == "frames" else 32) - 1)
    if kind == "frames":
        s.u(5, 0b11010)  # frame_mbs_only 1, direct 8x8, no cropping, VUI, no aspect ratio
    else:
        s.u(6, 0b001010)  # frame_mbs_only 0, mbaff 0, and the same
    s.u(3, 0)
    if kind:
        s.u(1, 0)
    else:
        s.u(1, 1)
        s.u(32, 1)
        s.u(32, 50)
        s.u(1, 1)  # fixed rate
    s.u(4, 0b0001)  # no HRD, no structure; bitstream_restriction:
    s.u(1, 1)
    for value in (0, 0, 10, 10, 0, references):  # no reordering
        s.ue(value)
    return unit(0x67, s.bytes())


def picture():
    p = Bits()
    p.ue(0)
    p.ue(0)
    p.u(2, 0)
    for value in (0, 0, 0):
        p.ue(value)
    p.u(3, 0)
    for _ in range(3):
        p.ue(0)
    p.u(3, 0b100)  # deblocking_filter_control
    return unit(0x68, p.bytes())


def coded(noise, number, is_bottom, is_idr):
    """One field; a frame if `is_bottom` is None."""
    s = Bits()
    for value in (0, 7, 0):  # first macroblock, I, parameter set
        s.ue(value)
    s.u(4, number % 16)
    if is_bottom is not None:
        s.u(2, 2 | is_bottom)
    if is_idr:
        s.ue(0)
    s.u(8, 2 * number + (is_bottom or 0))
    s.u(2 if is_idr else 1, 0)  # memory management
    s.ue(0)
    s.ue(1)  # no deblocking
    for _ in range(WIDTH // 16 * (HEIGHT // (16 if is_bottom is None else 32))):
        s.ue(25)
        s.align()
        level = noise.randrange(60, 180)
        for _ in range(384):
            s.u(8, level + noise.randrange(40))
    return unit(0x65 if is_idr else 0x61, s.bytes())


def main():
    noise = random.Random(7)
    kind = sys.argv[3] if len(sys.argv) > 3 else ""
    sets = sequence(int(sys.argv[2]) if len(sys.argv) > 2 else 1, kind) + picture()
    parts = [None] if kind == "frames" else [0, 1]
    delimiter = unit(0x09, b"\x10")
    with open(sys.argv[1], "wb") as out:
        for index in range(FRAMES):
            number = index % GROUP
            for part in parts:
                is_first = part != 1
                head = delimiter + (sets if number == 0 and is_first else b"")
                out.write(head + coded(noise, number, part, number == 0 and is_first))


main()
