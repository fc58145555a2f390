"""The sections of RESULTS.md."""
import os
import platform
import re
import time
from pathlib import Path

FILE = Path(__file__).resolve().parent / "RESULTS.md"


def machine():
    """The day and the machine, for the head of a section."""
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, {platform.system()} {platform.release()}, {os.cpu_count()} cores, {cpu_name()}"


def cpu_name():
    try:
        return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def save(section):
    """Puts a section in place of the one with the same heading; at the end where there is none."""
    heading = section.partition("\n")[0]
    before, _, rest = FILE.read_text().partition(f"{heading}\n")
    after = rest.partition("\n## ")
    following = f"\n## {after[2]}" if after[1] else ""
    FILE.write_text(before.rstrip("\n") + "\n\n" + section.rstrip("\n") + "\n" + following)
