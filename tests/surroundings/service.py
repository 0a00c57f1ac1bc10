#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server under systemd's own filter for services, as Debian's unit of redis has it.

    service.py CONFINED redis|nginx|postgres

SystemCallFilter=@system-service, without @privileged and @resources; any other call ends the process.  What is in the
sets the installed systemd-analyze says.  The server is started, made to work, and stopped; it and all its children must
live.  If it does not live without the library either, the test is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_S = 60
CONFINED = str(Path(sys.argv[1]).resolve())
PATH = os.pathsep.join([*map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))), os.environ["PATH"], "/usr/sbin"])


class Failed(Exception):
    pass


def skip(reason: str) -> None:
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def tool(name: str) -> str:
    path = shutil.which(name, path=PATH)
    if path is None:
        skip(f"no {name} here")
    return str(path)


# ---- the list ----


def members(name: str) -> set[str]:
    """The system calls of a set, those of the sets in it included."""
    run = subprocess.run([tool("systemd-analyze"), "syscall-filter", name], capture_output=True, text=True)
    rows = [row.strip() for row in run.stdout.splitlines()[1:]]
    rows = [row for row in rows if row and not row.startswith("#")]
    if run.returncode != 0 or not rows:
        skip(f"systemd-analyze does not know {name}")
    return set().union(*(members(row) if row.startswith("@") else {row} for row in rows))


def numbers(names: set[str]) -> str:
    """The numbers this system's headers have for them, as confined takes them."""
    text = "#include <sys/syscall.h>\n" + "".join(f"number_of {name} = __NR_{name}\n" for name in sorted(names))
    run = subprocess.run([tool("cc"), "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True)
    known = dict(re.findall(r"number_of (\w+) = \(?(\d+(?: *\+ *\d+)?)\)?$", run.stdout, re.M))
    return ",".join(str(sum(map(int, value.split("+")))) for value in known.values())


# ---- a server ----


def as_user(command: list[str]) -> list[str]:
    """postgres will not run as root; none of them should."""
    if os.geteuid() != 0:
        return command
    return [tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", *command]


class Server:
    """A command under the filter, its output in a file."""

    def __init__(self, folder: Path, calls: str, library: str | None, command: list[str]) -> None:
        self.log = folder / "log"
        environment = {"PATH": PATH, "HOME": str(folder), "LC_ALL": "C"}
        if library:
            environment["TEST_LIBRARY"] = library
        with self.log.open("ab") as log:
            whole = as_user([CONFINED, calls, *command])
            self.process = subprocess.Popen(whole, stdout=log, stderr=log, env=environment, cwd=folder)
        self.library = library

    def wait_until(self, is_true, what: str) -> None:
        for _ in range(PATIENCE_S * 20):
            if self.process.poll() is not None:
                raise Failed(f"the server ended with {self.process.returncode} before {what}")
            if is_true():
                break
            time.sleep(0.05)
        else:
            raise Failed(f"never {what}")
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        if self.library and Path(self.library).name not in maps:
            raise Failed("the library is not loaded")

    def end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        text = self.log.read_text(errors="replace")
        if status != 0 or re.search(r"terminated by signal|exited on signal|[Bb]ad system call", text):
            raise Failed(f"ended with {status}")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def client(folder: Path, *command: str) -> str:
    run = subprocess.run(
        as_user([tool(command[0]), *command[1:]]), capture_output=True, text=True, timeout=PATIENCE_S, cwd=folder,
        env={"PATH": PATH, "HOME": str(folder)},
    )
    if run.returncode != 0:
        raise Failed(f"{' '.join(command)}: {run.stdout}{run.stderr}")
    return run.stdout


def redis(folder: Path, start) -> None:
    path = str(folder / "socket")
    tool("redis-benchmark")
    server = start([tool("redis-server"), "--port", "0", "--unixsocket", path, "--save", "", "--dir", str(folder)])
    try:
        server.wait_until(lambda: answers(path), "open")
        client(folder, "redis-cli", "-s", path, "debug", "populate", "40000", "key", "1000")
        client(folder, "redis-benchmark", "-s", path, "-n", "3000", "-d", "400", "-r", "2000", "-q",
               "-t", "set,get,lpush,lpop,sadd,hset,mset")
        client(folder, "redis-cli", "-s", path, "bgsave")
        server.wait_until(lambda: (folder / "dump.rdb").exists(), "saved by a child")
        client(folder, "redis-cli", "-s", path, "flushall")
        if client(folder, "redis-cli", "-s", path, "ping").strip() != "PONG":
            raise Failed("no answer")
        server.end(signal.SIGTERM)
    finally:
        server.kill()


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        return peer.connect_ex(path) == 0


def fetch(path: str, name: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PATIENCE_S)
        peer.connect(path)
        peer.sendall(f"GET {name} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        return b"".join(iter(lambda: peer.recv(1 << 16), b""))


NGINX = """
daemon off; worker_processes 2; pid {0}/pid; error_log stderr notice;
events {{ worker_connections 64; }}
http {{
  access_log off; gzip on; gzip_types *; gzip_http_version 1.0; root {0}; default_type text/plain;
  client_body_temp_path {0}/t1; proxy_temp_path {0}/t2; fastcgi_temp_path {0}/t3; uwsgi_temp_path {0}/t4;
  scgi_temp_path {0}/t5;
  server {{ listen unix:{0}/socket; location /large {{ gzip off; sendfile off; output_buffers 2 24m; }} }}
}}
"""


def nginx(folder: Path, start) -> None:
    path = str(folder / "socket")
    (folder / "page.txt").write_text("".join(f"row {i} of a page\n" for i in range(40000)))
    (folder / "large").write_bytes(bytes(range(256)) * (40 << 12))
    (folder / "conf").write_text(NGINX.format(folder))
    server = start([tool("nginx"), "-p", str(folder), "-c", str(folder / "conf"), "-e", "stderr"])
    try:
        server.wait_until(lambda: answers(path), "open")
        for turn in range(3):
            if turn > 0:
                server.process.send_signal(signal.SIGHUP)
            for _ in range(60):
                if b" 200 OK" not in fetch(path, "/page.txt")[:40] or b" 404 " not in fetch(path, "/none")[:40]:
                    raise Failed("a wrong answer")
            if any(len(fetch(path, "/large")) < 40 << 20 for _ in range(4)):
                raise Failed("not all of the answer")
        server.end(signal.SIGQUIT)
    finally:
        server.kill()


def postgres(folder: Path, start) -> None:
    data = str(folder / "data")
    tool("pgbench")
    made = start([tool("initdb"), "-D", data, "-A", "trust", "-U", "test", "-N", "--no-instructions"])
    try:
        made.process.wait(PATIENCE_S)
        made.end(0)
        server = start([tool("postgres"), "-D", data, "-k", str(folder), "-c", "listen_addresses=", "-c", "fsync=off"])
    finally:
        made.kill()
    to = ["-h", str(folder), "-U", "test"]
    try:
        server.wait_until(lambda: "ready to accept" in server.log.read_text(), "ready")
        client(folder, "pgbench", *to, "-i", "-q", "postgres")
        client(folder, "pgbench", *to, "-c", "4", "-t", "60", "postgres")
        if client(folder, "psql", *to, "-Atc", "select count(*) from pgbench_history", "postgres").strip() != "240":
            raise Failed("not all transactions were made")
        large = "select length(string_agg(md5(i::text), '')) from generate_series(1, 300000) i"
        client(folder, "psql", *to, "-Atc", large, "postgres")
        server.end(signal.SIGINT)
    finally:
        server.kill()


def works(service, calls: str, library: str | None) -> bool:
    with tempfile.TemporaryDirectory(prefix="sutler-service-") as name:
        folder = Path(name)
        copy = None
        if library:
            copy = str(folder / "libsutler.so")
            shutil.copy(library, copy)
        if os.geteuid() == 0:
            os.chown(folder, 65534, 65534)
        folder.chmod(0o755)
        try:
            service(folder, lambda command: Server(folder, calls, copy, command))
        except (Failed, OSError, subprocess.TimeoutExpired) as problem:
            print(f"{'with' if library else 'without'} the library: {problem}")
            if (folder / "log").exists():
                print((folder / "log").read_text(errors="replace")[-3000:])
            return False
    return True


def main() -> int:
    service = {"redis": redis, "nginx": nginx, "postgres": postgres}[sys.argv[2]]
    calls = numbers(members("@system-service") - members("@privileged") - members("@resources"))
    if works(service, calls, os.environ["TEST_LIBRARY"]):
        return 0
    if not works(service, calls, None):
        skip(f"{sys.argv[2]} does not live under this filter, whatever its malloc")
    return 1


if __name__ == "__main__":
    sys.exit(main())
