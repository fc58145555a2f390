#!/usr/bin/env python3
"""Compares predictions with what `run` measured, and prints the table of errors for RESULTS.md.

    Benchmarks/players/compare.py walks.jsonl... --predicted predicted.jsonl [--half held-out|calibration|all] [--each] [--assert]

A prediction is a line for a swipe, as `run` writes them: player, link, packaging, mode, first_ms and second_ms (and run and swipe
where there are several). A combination meets the goal if p50 is off by at most 15 % or 25 ms, and p95 by at most 25 % or 50 ms, or by
twice the spread from run to run, whichever is largest.
"""
import argparse
import sys
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import walks  # noqa: E402

# share: relative and absolute limits.
GOALS = {0.5: (0.15, 25), 0.95: (0.25, 50)}


def error(real, predicted, measure, share):
    """Milliseconds that a percentile is off by, its share of the real one, and whether that meets the goal."""
    value, spread = walks.of_all(real, measure, share)
    guess, _ = walks.of_all(predicted, measure, share)
    if value is None or guess is None:
        return None
    relative, absolute = GOALS[share]
    off = guess - value
    return value, guess, off, off / value if value else 0.0, abs(off) <= max(relative * value, absolute, 2 * spread)


def main():
    parser = argparse.ArgumentParser(description="Compare predictions with what `run` measured.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--predicted", nargs="+", required=True)
    parser.add_argument("--half", choices=["held-out", "calibration", "all"], default="held-out")
    parser.add_argument("--each", action="store_true", help="also a row for each combination")
    parser.add_argument("--assert", dest="asserted", action="store_true", help="exit code 1 if a combination misses the goal")
    options = parser.parse_args()
    real, _ = walks.read(options.files)
    predicted, _ = walks.read(options.predicted)
    errors, each, missing = defaultdict(list), [], []
    for key, runs in real.items():
        half = walks.half(dict(zip(walks.KEYS, key)))
        if options.half != "all" and half != options.half.replace("-", " "):
            continue
        if key not in predicted:
            missing.append(key)
            continue
        for measure, title in walks.MEASURES.items():
            for share in GOALS:
                found = error(runs, predicted[key], measure, share)
                if found:
                    errors[key[0], title, share].append(found)
                    each.append((key, title, share, found))
    print("| player | | combinations | within the goal | error, median | worst | worst, of the real |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for (player, title, share), found in sorted(errors.items()):
        worst = max(found, key=lambda each: abs(each[2]))
        middle = walks.percentile([abs(each[2]) for each in found], 0.5)
        print(f"| {player} | {title} p{share * 100:.0f} | {len(found)} | {sum(each[4] for each in found)} | {middle:.0f} ms |"
              f" {worst[2]:+.0f} ms | {worst[3]:+.0%} |")
    if options.each:
        print("\n| player | link | packaging | mode | | real | predicted | error | |\n|---|---|---|---|---|---:|---:|---:|---|")
        for key, title, share, (value, guess, off, part, is_within) in each:
            print(f"| {' | '.join(key)} | {title} p{share * 100:.0f} | {value:.0f} | {guess:.0f} | {off:+.0f} ms, {part:+.0%} |"
                  f" {'' if is_within else 'misses'} |")
    if missing:
        print(f"\nNot predicted: {', '.join(' '.join(key) for key in missing)}")
    if options.asserted and (missing or not all(found[4] for *_, found in each)):
        sys.exit(1)


main()
