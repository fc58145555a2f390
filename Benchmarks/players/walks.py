"""What the scripts of this folder share: arguments, names, halves, percentiles."""
import hashlib
import json
import statistics
import sys
from collections import defaultdict

KEYS = ("player", "link", "packaging", "mode")
MEASURES = {"first_ms": "first frame", "second_ms": "second frame"}


def name(line):
    return " ".join(line[key] for key in KEYS)


def arguments():
    """Of a script that swipes: the mode, the URL of each swipe, and in seconds the dwell time and the limit of each wait."""
    _, mode, pattern, items, swipes, dwell, limit = sys.argv[1:8]
    url = [pattern.replace("{swipe}", str(number)).replace("{item}", str(number % int(items))) for number in range(int(swipes) + 1)]
    return mode, url, int(dwell) / 1e3, int(limit) / 1e3


def half(line):
    """`calibration` or `held out`, by a hash of the combination's name. A link without limits shows the fixed costs: it only calibrates."""
    if line["link"] == "unlimited":
        return "calibration"
    return ("calibration", "held out")[hashlib.sha256(name(line).encode()).digest()[0] % 2]


def read(files):
    """The swipes of JSON Lines, by combination and run, and the combinations that can't be played. Swipe 0, the start, is left out."""
    runs, failed = defaultdict(lambda: defaultdict(list)), {}
    for file in files:
        with open(file) as lines:
            for line in map(json.loads, lines):
                if "swipe" not in line:
                    continue
                if line["swipe"] > 0:
                    runs[tuple(line[key] for key in KEYS)][line.get("run", 1)].append(line)
                elif "error" in line:
                    failed[tuple(line[key] for key in KEYS)] = line["error"]
    return runs, {key: error for key, error in failed.items() if key not in runs}


def percentile(values, share):
    """Linear between the two nearest ranks."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def of_all(runs, measure, share):
    """A percentile of the swipes of all runs, and its spread: the standard deviation of the runs' own percentiles."""
    by_run = [[line[measure] for line in run if measure in line] for run in runs.values()]
    by_run = [values for values in by_run if values]
    if not by_run:
        return None, None
    each = [percentile(values, share) for values in by_run]
    return percentile([value for values in by_run for value in values], share), statistics.stdev(each) if len(each) > 1 else 0.0
