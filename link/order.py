#!/usr/bin/env python3
"""Writes link/order.txt: the functions that run in a usual session, so that they lie together.

    cargo rustc --release --bin pi -- -C strip=none
    link/order.py target/release/pi

Needs valgrind, nm and openssl. It runs the program under valgrind: without a model, with a model
that calls a tool and answers with code, with that session and a long one resumed, in print mode, and over TLS.
"""

import collections
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ORDER = pathlib.Path(__file__).with_name("order.txt")

MAX_RELATIVES_BYTES = 80_000

CODE = {
    "rust": 'fn main() {\n    let x: Vec<u32> = (0..10).map(|n| n * 2).collect();\n    println!("{x:?}"); // done\n}\n',
    "python": 'def f(a, b=1):\n    """Doc."""\n    return [x ** 2 for x in range(a) if x % b == 0]\n',
    "ts": "export const f = async (a: string): Promise<number> => {\n  return (await fetch(`/x/${a}`)).status;\n};\n",
}
ANSWER = "# Parts\n\nA **list** with `code`:\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" + "".join(
    f"Part {n}:\n\n```{language}\n{text * 3}```\n\n" for n, (language, text) in enumerate(CODE.items())
)


def event(delta, reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return "data: " + json.dumps({"id": "r", "model": "m", "choices": [choice]}) + "\n\n"


def answers():
    """A call of a tool, then text with code, and short texts."""
    arguments = json.dumps({"command": "echo done"})
    function = {"name": "bash", "arguments": arguments}
    end = 'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9}}\n\ndata: [DONE]\n\n'
    yield event({"tool_calls": [{"index": 0, "id": "c", "function": function}]}) + event({}, "tool_calls") + end
    pieces = "".join(event({"content": piece}) for piece in re.findall(r"\s*\S+", ANSWER))
    yield pieces + event({}, "stop") + end
    while True:
        yield event({"content": "Done."}) + event({}, "stop") + end


def serve(keeps_connections=False, certificate=None):
    """A model server; returns its address."""
    texts = answers()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body = next(texts).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            if keeps_connections:
                self.send_header("content-length", str(len(body)))
            else:
                self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}/v1"


def certificates(folder):
    """A root, and a certificate of it for this machine with its key; both as files."""
    root, key, signed = (os.path.join(folder, name) for name in ("root.pem", "root.key", "server.pem"))
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    server = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:false"]
    commands = [
        [*new, "-subj", "/CN=root", "-keyout", key, "-out", root],
        [*new, "-subj", "/CN=server", "-CA", root, "-CAkey", key, *server, "-keyout", signed, "-out", signed + ".crt"],
    ]
    for command in commands:
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with open(signed, "a") as file:
        file.write(pathlib.Path(signed + ".crt").read_text())
    return root, signed


def write_long_session(path, cwd):
    """A session of 10,000 messages: it is scanned by several threads, and most of it stays on disk."""
    time, parent = "2026-11-21T09:23:47.000Z", None
    lines = [{"type": "session", "version": 3, "id": "long", "timestamp": time, "cwd": cwd}]
    for n in range(10_000):
        text = f"message {n} " + "word " * 78
        if n % 2 == 0:
            message = {"role": "user", "content": text, "timestamp": 0}
        else:
            message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}
            message |= {"api": "openai-completions", "provider": "a", "model": "m", "timestamp": 0}
        lines.append({"type": "message", "id": f"{n:08x}", "parentId": parent, "timestamp": time, "message": message})
        parent = f"{n:08x}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def run(command, home, keys, environment):
    """Runs the command in a terminal and types the keys, each when the screen has come to rest."""
    pid, terminal = pty.fork()
    if pid == 0:
        project = os.path.join(home, "project")
        os.chdir(project if os.path.exists(project) else home)
        environment |= {"HOME": home, "TERM": "xterm-256color", "PATH": os.environ["PATH"]}
        os.execvpe(command[0], command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def rest(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    written = os.read(terminal, 65536)
                except OSError:
                    return
                until = time.monotonic() + seconds
                for question, answer in ((b"\x1b[6n", b"\x1b[5;1R"), (b"\x1b[c", b"\x1b[?62c")):
                    if question in written:
                        os.write(terminal, answer)

    rest(10)
    for key in keys:
        os.write(terminal, key.encode())
        rest(4)
    rest(4)
    os.waitpid(pid, 0)


def functions_of(program, home, args, keys, **environment):
    """The names of the functions that ran."""
    with tempfile.NamedTemporaryFile() as file:
        valgrind = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={file.name}"]
        run([*valgrind, program, *args], home, keys, environment)
        names = re.findall(r"^c?fn=\(\d+\) ([\w$.]+)", pathlib.Path(file.name).read_text(), re.MULTILINE)
    print(len(set(names)), "functions:", " ".join(args) or "without a model", file=sys.stderr)
    return set(names)


def pattern(name):
    """The name in any build: without the hashes of compiler, dependencies and modules."""
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", name)
    name = re.sub(r"Cs[0-9A-Za-z]{8,12}_", "Cs*_", name)
    return re.sub(r"\.llvm\.\d+$", ".llvm.*", name)


def ordered(groups, sizes):
    """Patterns of the functions of each group, without those of the groups before it."""
    running = set().union(*groups)
    of_pattern = collections.defaultdict(list)
    for name in sizes:
        of_pattern[pattern(name)].append(name)
    patterns = {}
    relatives = set()
    for matched, names in of_pattern.items():
        # One name may stand for hundreds of instances of a generic function, few of which run.
        # Those are named with their hash, which holds for one compiler and one set of dependencies.
        others = sum(sizes[name] for name in names if name not in running)
        is_exact = 2 * others > sum(sizes[name] for name in names)
        patterns |= {name: name if is_exact else matched for name in names}
        # Which of them run depends on timing too. The others of a small family come last.
        if is_exact and len(names) > 1 and others < MAX_RELATIVES_BYTES:
            relatives |= {name for name in names if name in running}
    lines = []
    for group in groups:
        lines += sorted({patterns[name] for name in group & sizes.keys()} - set(lines))
    return lines + sorted({pattern(name) for name in relatives} - set(lines))


def main():
    program = os.path.abspath(sys.argv[1])
    listed = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True)
    symbols = [s for s in map(str.split, listed.stdout.splitlines()) if len(s) == 4 and s[2] in "tTwW"]
    sizes = {name: int(size, 16) for _, size, _, name in symbols}
    if not sizes:
        sys.exit(f"{program} has no symbols; build it with `-- -C strip=none`")
    quit_keys = ["x", "\x7f", "\x04"]
    ask = ["hello there", "\r", *quit_keys]
    with tempfile.TemporaryDirectory() as demo, tempfile.TemporaryDirectory() as home:
        root, certificate = certificates(demo)
        servers = {"a": serve(), "b": serve(keeps_connections=True), "c": serve(certificate=certificate)}
        agent = pathlib.Path(home, ".pi/agent")
        agent.mkdir(parents=True)
        # A project: a repository with instructions and code.
        files = {".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "target\n", "AGENTS.md": "Be brief.\n", "src/main.rs": CODE["rust"]}
        for name, text in files.items():
            file = pathlib.Path(home, "project", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        providers = {
            name: {"baseUrl": address, "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}]}
            for name, address in servers.items()
        }
        (agent / "models.json").write_text(json.dumps({"providers": providers}))

        def with_model(name, *args, keys=ask):
            return functions_of(program, home, ["--model", f"{name}/m", *args], keys, SSL_CERT_FILE=root)

        start = functions_of(program, demo, [], quit_keys) | with_model("a", keys=quit_keys)
        answer = with_model("a") | with_model("b")
        long = pathlib.Path(home, "long.jsonl")
        write_long_session(long, os.path.join(home, "project"))
        resumed = with_model("a", "--continue", keys=["again", "\r", *quit_keys])
        resumed |= with_model("a", "--session", str(long), keys=quit_keys)
        other = with_model("a", "--print", "hello", keys=[])
        other |= with_model("c")
    # Equal functions are one, with many names; its section has one of them.
    at = collections.defaultdict(set)
    for address, _, _, name in symbols:
        at[address].add(name)
    names = {name: at[address] for address, _, _, name in symbols}
    groups = [set().union(*(names.get(name, set()) for name in group)) for group in (start, answer, resumed, other)]
    ORDER.write_text("\n".join(ordered(groups, sizes)) + "\n")


main()
