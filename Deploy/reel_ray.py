#!/usr/bin/env python3
"""A list of sources on a Ray cluster: each Ray task does one shard.

    python Deploy/reel_ray.py --shards 64 LIST FOLDER [-- options of reel poster]

LIST and FOLDER are on a file system that all nodes share, and reel is in PATH there (or --reel). The exit code is that of
reel: 0, 1 if some sources failed permanently, 75 if some may still succeed on a retry.
"""
import argparse
import ctypes
import signal
import subprocess
import sys

import ray

TEMPORARY = 75


class Temporary(Exception):
    """A shard that may succeed on a retry."""


def end_with_parent():
    """Called in the child: the kernel kills it if the worker dies (PR_SET_PDEATHSIG), so that its results are free."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@ray.remote(num_cpus=1)
def run_shard(command, index, count):
    """Returns the exit code of a shard. Ray calls it again after Temporary, and if the worker dies."""
    # --resume continues where an earlier run of the shard ended.
    process = subprocess.run(
        [*command, "--shard", f"{index}/{count}", "--resume", "--quiet"],
        preexec_fn=end_with_parent if sys.platform == "linux" else None)
    if process.returncode == TEMPORARY or process.returncode < 0:
        raise Temporary(f"shard {index} of {count}: exit code {process.returncode}")
    return process.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("folder")
    parser.add_argument("options", nargs="*", help="options of reel, after --")
    parser.add_argument("--shards", type=int, required=True, help="into how many shards the list is divided")
    parser.add_argument("--retries", type=int, default=5, help="how often a shard is tried again")
    parser.add_argument("--reel", default="reel")
    parser.add_argument("--command", default="poster", choices=["poster", "frames"])
    parser.add_argument("--address", help="of the cluster; by default RAY_ADDRESS, or a new one on this machine")
    parser.add_argument("--cpus", type=int, help="processors of a new cluster, each with a worker")
    arguments = parser.parse_args()

    ray.init(address=arguments.address, num_cpus=arguments.cpus, log_to_driver=True, include_dashboard=False)
    command = [
        arguments.reel, arguments.command, "--input", arguments.list, "-o", arguments.folder, *arguments.options]
    shard = run_shard.options(max_retries=arguments.retries, retry_exceptions=[Temporary])
    statuses = []
    for index, task in enumerate([shard.remote(command, i, arguments.shards) for i in range(arguments.shards)]):
        try:
            statuses.append(ray.get(task))
        except (Temporary, ray.exceptions.RayError) as error:
            print(f"shard {index}: {error}", file=sys.stderr)
            statuses.append(TEMPORARY)
    if TEMPORARY in statuses:
        return TEMPORARY
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(main())
