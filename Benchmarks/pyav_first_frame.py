"""The peer in Python: opens a URL with PyAV and writes its first frame as PPM. Usage: URL FILE [WIDTH]"""
import sys

import av

with av.open(sys.argv[1]) as container:
    frame = next(container.decode(video=0))
    width = int(sys.argv[3]) if len(sys.argv) > 3 else frame.width
    frame = frame.reformat(width=width, height=frame.height * width // frame.width, format="rgb24")
plane = frame.planes[0]
rows, stride, width = bytes(plane), plane.line_size, frame.width * 3
with open(sys.argv[2], "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (frame.width, frame.height))
    for row in range(frame.height):
        file.write(rows[row * stride : row * stride + width])
