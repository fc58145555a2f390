"""The clients. Each yields samples: what the client itself says of where it is, about four times a second."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import material

HERE = Path(__file__).resolve().parent
SYSTEM_PYTHON = os.environ.get("SYSTEM_PYTHON", "/usr/bin/python3")
# The PyPI package that has hls.js, and where in it.
LIBRARY = ("OctoPrint==1.11.8", "octoprint/static/js/lib/hls.js")


def fetch_hls_js():
    """hls.js: $HLS_JS, or the file in the cache, which PyPI's package is fetched for."""
    if os.environ.get("HLS_JS"):
        return Path(os.environ["HLS_JS"])
    file = material.CACHE / "hls.js"
    if not file.exists():
        with tempfile.TemporaryDirectory() as spare:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", spare, LIBRARY[0]], check=True)
            archive = next(Path(spare).iterdir())
            if archive.suffix == ".whl":
                data = zipfile.ZipFile(archive).read(LIBRARY[1])
            else:
                with tarfile.open(archive) as tar:
                    data = tar.extractfile(next(each for each in tar if each.name.endswith(LIBRARY[1]))).read()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return file


def stop(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(8)
            return
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def lines_of(command, seconds):
    """The objects that a program of ours prints; an error where it ends without one."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        timer = threading.Timer(seconds + 60, stop, [process])
        timer.start()
        count = 0
        try:
            for line in process.stdout:
                count += 1
                yield json.loads(line)
            process.wait()
            errors.seek(0)
            said = [line for line in errors.read().splitlines() if line.strip()]
            if count == 0 or process.returncode not in (0, -signal.SIGTERM):
                yield {"at": time.monotonic(), "position": None, "failed": f"ended with {process.returncode}: {said[-1] if said else 'no word'}"}
        finally:
            timer.cancel()
            stop(process)


def browser(player):
    def play(url, seconds, is_live):
        return lines_of([sys.executable, HERE / "browser_play.py", player, url, seconds, fetch_hls_js()], seconds)
    return play


def gstreamer(url, seconds, is_live):
    return lines_of([SYSTEM_PYTHON, HERE / "gst_play.py", url, seconds], seconds)


def mpv(url, seconds, is_live):
    """mpv with its default options and outputs `null`, which follow the clock. Its JSON IPC says the position."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = f"{folder}/socket", f"{folder}/log"
        process = subprocess.Popen(["mpv", "--no-config", "--vo=null", "--ao=null", "--no-terminal", f"--log-file={log}", f"--input-ipc-server={path}",
                                    "--idle=no", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        began, connection = time.monotonic(), None
        names = {"position": "time-pos", "stalled": "paused-for-cache", "frames": "estimated-frame-number", "dropped": "frame-drop-count",
                 "width": "width", "audio_rate": "audio-params/samplerate", "version": "mpv-version"}
        try:
            while time.monotonic() < began + seconds and process.poll() is None:
                if connection is None:
                    try:
                        connection = socket.socket(socket.AF_UNIX)
                        connection.settimeout(5)
                        connection.connect(path)
                        answers = connection.makefile()
                    except OSError:
                        connection = None
                        time.sleep(0.1)
                        continue
                sample = {"at": time.monotonic(), "ended": False, "failed": None}
                try:
                    for number, name in enumerate(names.values()):
                        connection.sendall((json.dumps({"command": ["get_property", name], "request_id": number + 1}) + "\n").encode())
                    wanted = dict(enumerate(names, 1))
                    while wanted:
                        line = answers.readline()
                        if not line:
                            raise OSError("closed")
                        answer = json.loads(line)
                        if answer.get("request_id") in wanted and "error" in answer:
                            sample[wanted.pop(answer["request_id"])] = answer.get("data")
                except (OSError, TimeoutError):
                    # It has ended, or is just ending.
                    time.sleep(0.2)
                    continue
                sample["problems"] = mpv_problems(log)
                yield sample
                time.sleep(0.25)
            sample = {"at": time.monotonic(), "position": None, "problems": mpv_problems(log), "failed": None, "ended": process.poll() == 0}
            if process.poll() not in (None, 0):
                sample["failed"] = (sample["problems"] or [f"ended with {process.returncode}"])[-1]
            yield sample
        finally:
            stop(process)


def mpv_problems(log):
    """Its warnings and errors, each once with its count."""
    counts = {}
    try:
        lines = Path(log).read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        found = re.match(r"\[ *[\d.]+\]\[([wef])\]\[[^]]*\] (.*)", line)
        if found:
            text = re.sub(r"https?://\S+|'[^']*'", "…", found[2])
            text = re.sub(r"\d+(\.\d+)?", "N", text)
            counts[text] = counts.get(text, 0) + 1
    return [f"{text} (×{count})" if count > 1 else text for text, count in counts.items()]


def ffmpeg(url, seconds, is_live):
    """ffmpeg decodes video and audio into nothing: in real time if on demand (-re), as segments come if live."""
    with tempfile.TemporaryFile("w+") as errors:
        pace = [] if is_live else ["-re"]
        process = subprocess.Popen(
            ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "level+warning", *pace, "-i", url, "-map", "0:v:0", "-map", "0:a:0",
             "-t", str(seconds), "-progress", "pipe:1", "-stats_period", "0.25", "-f", "null", "-"],
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        timer = threading.Timer(seconds + (20 if is_live else 5), stop, [process])
        timer.start()
        try:
            values = {}
            for line in process.stdout:
                name, _, value = line.strip().partition("=")
                values[name] = value
                if name == "progress":
                    time_us = values.get("out_time_us", "N/A")
                    yield {"at": time.monotonic(), "position": int(time_us) / 1e6 if time_us.lstrip("-").isdigit() else None,
                           "frames": int(values.get("frame", 0)), "ended": False, "failed": None, "problems": []}
            process.wait()
            errors.seek(0)
            counts = {}
            for line in errors.read().splitlines():
                found = re.match(r"(?:\[[^]]* @ [^]]*\] )?\[(warning|error|fatal)\] (.*)", line)
                if found:
                    text = re.sub(r"https?://\S+|'[^']*'|0x[0-9a-f]+", "…", found[2])
                    text = re.sub(r"\d+(\.\d+)?", "N", text)
                    counts[text] = counts.get(text, 0) + 1
            problems = [f"{text} (×{count})" if count > 1 else text for text, count in counts.items()]
            yield {"at": time.monotonic(), "position": None, "ended": process.returncode == 0, "problems": problems,
                   "failed": None if process.returncode in (0, 255, -signal.SIGTERM) else (problems or [f"ended with {process.returncode}"])[-1]}
        finally:
            timer.cancel()
            stop(process)


CLIENTS = {"chromium": browser("chromium"), "chromium, no crossorigin": browser("chromium-plain"), "hls.js": browser("hls.js"),
           "mpv": mpv, "ffmpeg": ffmpeg, "gstreamer": gstreamer}
DEFAULT = [name for name in CLIENTS if name != "chromium, no crossorigin"]


def missing():
    """The clients that are not installed, with what to install."""
    found = {}
    if not shutil.which(os.environ.get("CHROMIUM", "chromium")):
        found["chromium"] = found["hls.js"] = found["chromium, no crossorigin"] = "chromium"
    for name in "mpv", "ffmpeg":
        if not shutil.which(name):
            found[name] = name
    check = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None); assert Gst.ElementFactory.find('hlsdemux2')"
    if subprocess.run([SYSTEM_PYTHON, "-c", check], stderr=subprocess.DEVNULL).returncode:
        found["gstreamer"] = "python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav"
    return found
