"""Builds the benchmarks that are packages of their own."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(package, products, cache):
    """Builds programs that depend on Reel, and returns their folder.

    After `Scripts/build`, with its versions and flags into its folder, so that only their own files are compiled. Otherwise
    into `cache`, with everything that Reel depends on.
    """
    print(f"benchmark: building {', '.join(products)} (the first time may take minutes)", file=sys.stderr, flush=True)
    command = ["swift", "build", "-c", "release", "--package-path", package]
    scratch = ROOT / ".build"
    if (scratch / "release" / "reel").exists() and os.environ.get("REEL_CONFIGURATION", "release") == "release":
        shutil.copyfile(ROOT / "Package.resolved", package / "Package.resolved")
        command += ["-Xswiftc", "-enable-testing", "--only-use-versions-from-resolved-file"]
    else:
        scratch = cache
    for product in products:
        done = subprocess.run([*map(str, command), "--scratch-path", str(scratch), "--product", product], cwd=ROOT,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"benchmark: swift build: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return scratch / "release"
