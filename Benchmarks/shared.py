"""What the benchmarks share: Reel and its server, other processes, material, PyPI, headless Chromium, nginx, a link between two network
namespaces, and the sections of RESULTS.md. Only the standard library is used."""
import argparse
import http.server
import json
import os
import platform
import queue
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
import urllib.parse
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
RESULTS = HERE / "RESULTS.md"
REEL = os.environ.get("REEL") or str(HERE.parent / ".build" / "release" / "reel")
REEL = os.path.abspath(shutil.which(REEL) or REEL)
CHROMIUM = os.environ.get("CHROMIUM", "chromium")
# Debian's modules for mpv and GStreamer are for its own Python.
SYSTEM_PYTHON = os.environ.get("SYSTEM_PYTHON", "/usr/bin/python3")


def note(text):
    print(f"benchmark: {text}", file=sys.stderr, flush=True)


def arguments(text, parts=()):
    """A parser for a script whose documentation is `text`, with --save, and PART... if it has parts."""
    def part(name):
        if name not in parts:
            raise argparse.ArgumentTypeError(f"no part '{name}'; there are {', '.join(parts)}")
        return name

    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if parts:
        parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=", ".join(parts))
    parser.add_argument("--save", action="store_true", help="put what was measured into Benchmarks/RESULTS.md")
    return parser


# MARK: - Processes

def words(command):
    return [str(word) for word in command]


def output_of(*command, **options):
    """What a command prints. It must succeed."""
    done = subprocess.run(words(command), capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"benchmark: {' '.join(words(command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def version_of(*command):
    """The first line that a command prints; nothing if it is not installed."""
    try:
        done = subprocess.run(words(command), capture_output=True, text=True)
    except OSError:
        return ""
    return (done.stdout + done.stderr).split("\n")[0].split(" Copyright")[0].removeprefix("nginx version: ").strip()


def end(process):
    """Ends a process with SIGTERM, and with SIGKILL after 10 s."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_group(process):
    """Ends a process that was started in a session of its own, with all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def lines_of(command, limit):
    """The objects that a program prints, one a line. RuntimeError if it fails, or prints nothing for `limit` seconds."""
    said = queue.Queue()

    def read():
        for line in process.stdout:
            if line.startswith("{"):
                said.put(json.loads(line))
        said.put(None)

    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words(command), stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        threading.Thread(target=read, daemon=True).start()
        try:
            while (line := said.get(timeout=limit)) is not None:
                yield line
            if process.wait():
                errors.seek(0)
                raise RuntimeError(f"ended with {process.returncode}: {(errors.read().strip().splitlines() or ['no word'])[-1]}")
        except queue.Empty:
            raise RuntimeError(f"no word in {limit:g} s") from None
        finally:
            end_group(process)


def memory(pid, field, file="status"):
    """Bytes of a field of /proc/PID/status (VmRSS, VmHWM) or smaps_rollup (Anonymous); None if the process has ended."""
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(found[1]) * 1024 if found else None


class Server:
    """`reel serve` over a folder on a free port, while the `with` lasts. A link is modelled for all connections of a server."""

    def __init__(self, folder, link=None, faults=(), record=None):
        if not shutil.which(REEL):
            raise SystemExit(f"benchmark: no executable at {REEL}: run Scripts/build, or set REEL")
        command = [REEL, "serve", folder, "--port", "0", *(["--link", link] if link else [])]
        for fault in faults:
            command += ["--fault", fault]
        if record:
            command += ["--record", record]
        self.process = subprocess.Popen(words(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        self.url = self.process.stdout.readline().strip().rstrip("/")
        if not self.url.startswith("http://"):
            end(self.process)
            raise SystemExit(f"benchmark: `{REEL} serve` printed no address")
        return self

    def __exit__(self, *_):
        end(self.process)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(process, port, address="127.0.0.1", namespace=None):
    """Waits until a server, which is this process, accepts connections."""
    limit = time.monotonic() + 60
    test = within(namespace, "bash", "-c", f": < /dev/tcp/{address}/{port}")
    while subprocess.run(test, stderr=subprocess.DEVNULL).returncode:
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError("the server did not start")
        time.sleep(0.1)


class Scratch:
    """A folder while the `with` lasts, in memory if so many bytes have room there."""

    def __init__(self, needed=0):
        memory = Path("/dev/shm")
        self.in_memory = memory.is_dir() and shutil.disk_usage(memory).free > needed
        self.path = Path(tempfile.mkdtemp(prefix="reel-benchmark-", dir=memory if self.in_memory else None))

    def empty(self):
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def count(self, *endings):
        """How many files with such an ending there are."""
        return sum(1 for entry in self.path.rglob("*") if entry.suffix in endings and entry.stat().st_size > 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


# MARK: - Material

def ffmpeg(*arguments, cwd=None):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *words(arguments)], check=True, cwd=cwd)


def make_folder(folder, make):
    """A folder that `make(folder)` fills once."""
    if not (folder / "complete").exists():
        note(f"making {folder.relative_to(CACHE)}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        (folder / "complete").touch()
    return folder


def make_file(file, make):
    """A file that `make(path)` writes once."""
    if not file.exists():
        note(f"making {file.relative_to(CACHE)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part" + file.suffix)
        make(part)
        part.rename(file)
    return file


# MARK: - PyPI

# The environment variable that names another one, the package that has it, and where in it.
LIBRARIES = {"hls.js": ("HLS_JS", "OctoPrint==1.11.8", "octoprint/static/js/lib/hls.js"),
             "video.min.js": ("VIDEO_JS", "js.videojs==7.5.5", "js/videojs/resources/video.min.js")}


def library(name):
    """The file of a JavaScript library."""
    variable, package, path = LIBRARIES[name]

    def fetch(file):
        with tempfile.TemporaryDirectory() as spare:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", spare, package], check=True)
            archive = next(Path(spare).iterdir())
            if archive.suffix == ".whl":
                file.write_bytes(zipfile.ZipFile(archive).read(path))
            else:
                with tarfile.open(archive) as tar:
                    file.write_bytes(tar.extractfile(next(each for each in tar if each.name.endswith(path))).read())

    return Path(os.environ[variable]) if os.environ.get(variable) else make_file(CACHE / "js" / name, fetch)


def python_with(*modules):
    """The Python of a virtual environment in the cache that has these modules of PyPI; None if it cannot be made."""
    python = CACHE / "venv" / "bin" / "python"
    if python.exists() and not subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode:
        return python
    note(f"installing {' and '.join(modules)} into a virtual environment")
    for command in [sys.executable, "-m", "venv", CACHE / "venv"], [python, "-m", "pip", "install", "--quiet", *modules]:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            note(f"no {' and '.join(modules)}: {(done.stderr.splitlines() or [''])[-1]}")
            return None
    return python


# MARK: - Chromium

class Browser:
    """Headless Chromium with a page, while the `with` lasts. Loopback serves the page and its scripts; `said` is a queue of what the page posts."""

    def __init__(self, page, scripts, size, **query):
        self.files = {"/": page, **{f"/{name}": library(name) for name in scripts}}
        self.size, self.query, self.said = size, urllib.parse.urlencode(query), queue.Queue()

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        # Chromium may close a connection at any time.
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--autoplay-policy=no-user-gesture-required",
             "--remote-debugging-port=0", f"--window-size={self.size}", f"--user-data-dir={self.profile.name}",
             f"http://127.0.0.1:{self.server.server_port}/?{self.query}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        return self

    def handler(self):
        files, said = self.files, self.said

        class Page(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                name = self.path.partition("?")[0]
                body = files[name].read_bytes() if name in files else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html" if name == "/" else "text/javascript")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                said.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        return Page

    def __exit__(self, *_):
        end_group(self.process)
        self.server.shutdown()
        # What ended just now may still write into the profile.
        time.sleep(0.2)
        self.profile.cleanup()


# MARK: - nginx

NGINX = """
daemon off; user root; worker_processes 1; worker_rlimit_nofile 20000; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 16384; }}
http {{
  types {{ application/dash+xml mpd; application/vnd.apple.mpegurl m3u8; video/mp2t ts; video/mp4 mp4 m4s; }}
  log_format requests escape=json '{{"end":$msec,"took":$request_time,"connection":$connection,"number":$connection_requests,"path":"$request_uri",'
    '"protocol":"$server_protocol","status":$status,"bytes":$body_bytes_sent,"range":"$http_range","complete":"$request_completion",'
    '"agent":"$http_user_agent","viewer":"$http_x_viewer"}}';
  access_log {folder}/requests requests;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {servers}
}}
"""


class Nginx:
    """nginx with these blocks of its configuration, while the `with` lasts; in a namespace, and reached from another one, if they are named."""

    def __init__(self, folder, servers, port, address="127.0.0.1", namespace=None, client=None):
        self.folder, self.namespace, self.reached = Path(folder), namespace, (port, address, client)
        self.configuration, self.log = self.folder / "nginx.conf", self.folder / "requests"
        self.configuration.write_text(NGINX.format(folder=folder, servers=servers))
        self.log.write_text("")

    def __enter__(self):
        self.process = subprocess.Popen(within(self.namespace, "nginx", "-c", self.configuration, "-p", self.folder))
        try:
            wait_for(self.process, *self.reached)
        except BaseException:
            end(self.process)
            raise
        return self

    def __exit__(self, *_):
        end(self.process)

    def mark(self):
        return self.log.stat().st_size

    def since(self, mark):
        """The requests that ended after a mark."""
        with open(self.log, "rb") as log:
            log.seek(mark)
            return [json.loads(line) for line in log.read().splitlines() if line.endswith(b"}")]


def certificate(folder, address):
    """Makes a certificate for an address, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={address}", "-addext",
                    f"subjectAltName=IP:{address}", "-keyout", folder / "key", "-out", folder / "certificate"], check=True, stderr=subprocess.DEVNULL)
    return folder / "certificate", folder / "key"


# MARK: - A link

SERVER, CLIENT = "reel-server", "reel-client"
ADDRESS = "10.77.0.1"
# Bytes. Deep enough for a whole answer, as the buffers of mobile networks are.
QUEUE = 1_000_000


def within(namespace, *command):
    return [*(["ip", "netns", "exec", namespace] if namespace else []), *words(command)]


def rate_and_delay(link):
    """Bits a second and one-way microseconds of `10Mbit/50ms`, whose delay is the round trip; `unlimited` has neither."""
    if link == "unlimited":
        return 0, 0
    found = re.fullmatch(r"([\d.]+)Mbit/([\d.]+)ms", link)
    if not found:
        raise SystemExit(f"benchmark: {link}: not a link; write it as 10Mbit/50ms, or unlimited")
    return int(float(found[1]) * 1e6), int(float(found[2]) * 500)


class Link:
    """Two network namespaces joined by link/delay.c, while the `with` lasts. It needs root, iproute2, a C compiler and /dev/net/tun.

    Afterwards `dropped` says how many packets the full queue has lost."""

    def __init__(self, link, queue=QUEUE):
        self.settings, self.delay, self.dropped = words([*rate_and_delay(link), queue]), None, None

    def __enter__(self):
        def ip(*command):
            subprocess.run(["ip", *command], check=True)

        CACHE.mkdir(exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-o", CACHE / "delay", HERE / "link" / "delay.c"], check=True)
        try:
            for name in SERVER, CLIENT:
                subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "dev", "lo", "up")
            self.delay = subprocess.Popen([CACHE / "delay", SERVER, CLIENT, *self.settings], stdout=subprocess.PIPE, text=True)
            self.delay.stdout.readline()
            for name, address, other in (SERVER, ADDRESS, "10.77.0.2"), (CLIENT, "10.77.0.2", ADDRESS):
                ip("-n", name, "address", "add", address, "peer", other, "dev", "link")
                ip("-n", name, "link", "set", "dev", "link", "mtu", "1500", "up")
                # What one connection learnt is not to be told to the next.
                subprocess.run(within(name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.delay:
            self.delay.terminate()
            self.dropped = int((self.delay.communicate()[0].split() or ["0"])[-1])
        for name in SERVER, CLIENT:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


# MARK: - Results

def machine():
    """The day and the machine, for the head of a section."""
    try:
        processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        processor = platform.processor() or platform.machine()
    return f"{time.strftime('%Y-%m-%d', time.gmtime())}, {platform.system()} {platform.release()}, {os.cpu_count()} cores, {processor}"


class Report:
    """Lines of Markdown, printed as they come."""

    def __init__(self):
        self.lines = []

    def say(self, *lines):
        """These lines, and an empty one."""
        for line in (*lines, ""):
            print(line, flush=True)
            self.lines.append(line)

    def paragraphs(self, *lines):
        for line in lines:
            self.say(line)

    def table(self, head, rows):
        self.say(f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|", *(f"| {' | '.join(row)} |" for row in rows))

    def save(self):
        save("\n".join(self.lines))


def save(section):
    """Puts a section into RESULTS.md, in place of the one with the same heading; at the end where there is none."""
    heading = section.partition("\n")[0]
    before, _, rest = RESULTS.read_text().partition(f"{heading}\n")
    after = rest.partition("\n## ")
    following = f"\n## {after[2]}" if after[1] else ""
    RESULTS.write_text(before.rstrip("\n") + "\n\n" + section.rstrip("\n") + "\n" + following)
