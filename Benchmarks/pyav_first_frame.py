"""The peer in Python: opens a URL with PyAV and writes its first frame as PPM. Usage: URL FILE"""
import sys

import av

with av.open(sys.argv[1]) as container:
    frame = next(container.decode(video=0)).reformat(format="rgb24")
plane = frame.planes[0]
rows, stride, width = bytes(plane), plane.line_size, frame.width * 3
with open(sys.argv[2], "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (frame.width, frame.height))
    for row in range(frame.height):
        file.write(rows[row * stride : row * stride + width])
