#!/usr/bin/env python3
"""The peer in Python: the first frame of a URL, 320 pixels wide, as PPM. Usage: URL FILE"""
import sys

import av

with av.open(sys.argv[1]) as container:
    frame = next(container.decode(video=0))
    height = frame.height * 320 // frame.width
    frame = frame.reformat(width=320, height=height, format="rgb24")
plane = frame.planes[0]
rows, stride, width = bytes(plane), plane.line_size, frame.width * 3
with open(sys.argv[2], "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (frame.width, frame.height))
    for row in range(frame.height):
        file.write(rows[row * stride : row * stride + width])
