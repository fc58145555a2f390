"""The clients. Each yields samples: what the client itself says of where it is, about four times a second."""
import json
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from shared import CHROMIUM, SYSTEM_PYTHON, Browser, end_group, lines_of

HERE = Path(__file__).resolve().parent


def browser(player):
    def play(url, seconds, is_live):
        with Browser(HERE / "page.html", ["hls.js"] if player == "hls.js" else [], "400,300", player=player, url=url) as page:
            # The seconds count from the page's first sample.
            began, limit = None, time.monotonic() + 30
            while time.monotonic() < limit:
                try:
                    sample = {**page.said.get(timeout=1), "at": time.monotonic()}
                except queue.Empty:
                    continue
                if began is None:
                    began, limit = sample["at"], sample["at"] + seconds
                yield sample
                if sample["ended"] or sample["failed"]:
                    break
    return play


def gstreamer(url, seconds, is_live):
    try:
        yield from lines_of([SYSTEM_PYTHON, HERE / "gst_play.py", url, seconds], 60)
    except RuntimeError as error:
        yield {"at": time.monotonic(), "position": None, "failed": str(error)}


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
            end_group(process)


def mpv_problems(log):
    """Its warnings and errors."""
    try:
        lines = Path(log).read_text(errors="replace").splitlines()
    except OSError:
        return []
    return counted(re.match(r"\[ *[\d.]+\]\[[wef]\]\[[^]]*\] (.*)", line) for line in lines)


def counted(found):
    """Each text that was found once, with its count, without URLs and numbers."""
    counts = {}
    for each in filter(None, found):
        text = re.sub(r"https?://\S+|'[^']*'|0x[0-9a-f]+", "…", each[1])
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
        timer = threading.Timer(seconds + (20 if is_live else 5), end_group, [process])
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
            lines = errors.read().splitlines()
            problems = counted(re.match(r"(?:\[[^]]* @ [^]]*\] )?\[(?:warning|error|fatal)\] (.*)", line) for line in lines)
            yield {"at": time.monotonic(), "position": None, "ended": process.returncode == 0, "problems": problems,
                   "failed": None if process.returncode in (0, 255, -signal.SIGTERM) else (problems or [f"ended with {process.returncode}"])[-1]}
        finally:
            timer.cancel()
            end_group(process)


CLIENTS = {"chromium": browser("chromium"), "chromium, no crossorigin": browser("chromium-plain"), "hls.js": browser("hls.js"),
           "mpv": mpv, "ffmpeg": ffmpeg, "gstreamer": gstreamer}
DEFAULT = [name for name in CLIENTS if name != "chromium, no crossorigin"]


def missing():
    """The clients that are not installed, with what to install."""
    found = {}
    if not shutil.which(CHROMIUM):
        found["chromium"] = found["hls.js"] = found["chromium, no crossorigin"] = "chromium"
    for name in "mpv", "ffmpeg":
        if not shutil.which(name):
            found[name] = name
    check = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None); assert Gst.ElementFactory.find('hlsdemux2')"
    if subprocess.run([SYSTEM_PYTHON, "-c", check], stderr=subprocess.DEVNULL).returncode:
        found["gstreamer"] = "python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav"
    return found
