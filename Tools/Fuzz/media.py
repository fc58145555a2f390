#!/usr/bin/env python3
"""Runs `reel` on damaged media for a number of seconds: Scripts/fuzz --media [SECONDS] [FILE]...

Each case is one of the FILEs (by default, the fixtures in media/) with bytes changed, removed, repeated or replaced by
bytes of another file. Each process of `reel frames` or `reel play` gets twelve cases. The run fails with exit code 1 if
a process dies from a signal, takes longer than two minutes or uses more than 2 GiB; its inputs are then kept in
.build-fuzz/findings.

FUZZ_REEL is the path of the tool (default: .build/release/reel), and FUZZ_SEED the first random seed (default: 0).
"""

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

CASES = 12
SECONDS = 120
MEMORY = 2 << 30
# Values at which sizes, counts and lengths tend to go wrong.
EDGES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def mutate(data, others, rng):
    """Returns a damaged copy. The first kilobytes, where headers are, are damaged more often."""
    data = bytearray(data)

    def place():
        near = min(len(data), rng.choice([64, 512, 4096, len(data)]))
        return rng.randrange(near) if near else 0

    for _ in range(rng.choice([1, 1, 2, 4, 16, 64])):
        at = place()
        kind = rng.randrange(8)
        if kind < 3:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 4:
            width = rng.choice([1, 2, 3, 4, 8])
            value = rng.choice(EDGES) & (1 << 8 * width) - 1
            data[at : at + width] = value.to_bytes(width, rng.choice(["big", "little"]))
        elif kind == 5:
            del data[at : at + rng.choice([1, 2, 16, 188, 1024])]
        elif kind == 6:
            length = rng.choice([1, 4, 64, 1024])
            data[at:at] = data[at : at + length] * rng.choice([1, 2, 8])
        else:
            other = rng.choice(others)
            start, length = rng.randrange(len(other)), rng.choice([4, 64, 1024, 16384])
            data[at : at + length] = other[start : start + length]
    if rng.randrange(8) == 0:
        del data[place() :]
    return bytes(data)


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(tool, arguments, errors):
    """Runs a process. Returns its exit code, or None if it took too long, and its peak memory."""
    process = subprocess.Popen(
        [tool, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limit)
    end = time.monotonic() + SECONDS
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss << 10
        if time.monotonic() > end:
            process.kill()
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = -9
            return None, usage.ru_maxrss << 10
        time.sleep(0.01)


def main():
    seconds, names = 600, []
    for argument in sys.argv[1:]:
        if argument.isdigit() and not names:
            seconds = int(argument)
        else:
            names.append(argument)
    media = "Fixtures/media"
    names = names or [os.path.join(media, name) for name in sorted(os.listdir(media))]
    files = [open(name, "rb").read() for name in names]
    files, names = zip(*[(data, name) for data, name in zip(files, names) if data])
    tool = os.path.abspath(os.environ.get("FUZZ_REEL", ".build/release/reel"))
    if not os.access(tool, os.X_OK):
        sys.exit(f"fuzz: {tool} does not exist: build it, or set FUZZ_REEL to another")
    findings = os.path.abspath(".build-fuzz/findings")
    os.makedirs(findings, exist_ok=True)
    seed = int(os.environ.get("FUZZ_SEED", "0"))
    begin, cases, failed, largest = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="reel-fuzz-") as folder:
        while time.monotonic() - begin < seconds:
            rng = random.Random(seed)
            paths = []
            for number in range(CASES):
                index = rng.randrange(len(files))
                path = os.path.join(folder, f"{number}-{os.path.basename(names[index])}")
                with open(path, "wb") as file:
                    file.write(mutate(files[index], files, rng))
                paths.append(path)
            output = os.path.join(folder, "out")
            arguments = rng.choice(
                [
                    ["frames", "--count", "0", "--size", "32x18"],
                    ["frames", "--count", "0", "--size", "32x18"],
                    ["frames", "--at", "0.5", "--size", "32x18"],
                    ["play", "--rate", "max", "--duration", "3"],
                    ["play", "--rate", "max", "--start", "0.5"],
                ])
            if arguments[0] == "frames":
                arguments = arguments + ["--jobs", "1", "-o", output]
            with open(os.path.join(folder, "errors"), "wb") as errors:
                code, memory = run(tool, arguments + ["--quiet", "--timeout", "20", *paths], errors)
            cases += CASES
            largest = max(largest, memory)
            fault = None
            if code is None:
                fault = f"took more than {SECONDS} s"
            elif code < 0 or code in (70, 132, 133, 134, 135, 136, 139):
                fault = f"ended with {code}"
            elif memory > MEMORY:
                fault = f"took {memory >> 20} MiB"
            if fault:
                failed += 1
                kept = os.path.join(findings, f"media-{seed}")
                shutil.rmtree(kept, ignore_errors=True)
                os.makedirs(kept)
                for path in paths + [os.path.join(folder, "errors")]:
                    shutil.copy(path, kept)
                print(f"fuzz: reel {' '.join(arguments)} {fault}; its inputs are in {kept}", file=sys.stderr)
            shutil.rmtree(output, ignore_errors=True)
            seed += 1
    spent = time.monotonic() - begin
    print(
        f"{cases} cases of {len(files)} files, {cases / spent:.0f} a second, {spent:.0f} s, "
        f"{largest >> 20} MiB at the most, {failed} failed")
    sys.exit(1 if failed else 0)


main()
