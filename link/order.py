#!/usr/bin/env python3
"""Writes link/order.txt: the functions that run in a usual session, so that they lie together.

    cargo rustc --release --bin pi -- -C strip=none
    link/order.py target/release/pi

Needs valgrind and nm. It runs the program four times under valgrind: without a model, with a
model that answers with code and calls a tool, with the session resumed, and in print mode.
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
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ORDER = pathlib.Path(__file__).with_name("order.txt")

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


def serve():
    """A model server; returns its address."""
    texts = answers()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(next(texts).encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def run(command, home, keys):
    """Runs the command in a terminal and types the keys, each when the screen has come to rest."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.execvpe(command[0], command, {"HOME": home, "TERM": "xterm-256color", "PATH": os.environ["PATH"]})
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


def functions_of(program, home, args, keys):
    """The names of the functions that ran."""
    with tempfile.NamedTemporaryFile() as file:
        valgrind = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={file.name}"]
        run([*valgrind, program, *args], home, keys)
        names = re.findall(r"^c?fn=\(\d+\) ([\w$.]+)", pathlib.Path(file.name).read_text(), re.MULTILINE)
    print(len(set(names)), "functions:", " ".join(args) or "without a model", file=sys.stderr)
    return set(names)


def pattern(name):
    """The name in any build: without the hashes of compiler, dependencies and modules."""
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", name)
    name = re.sub(r"Cs[0-9A-Za-z]{8,12}_", "Cs*_", name)
    return re.sub(r"\.llvm\.\d+$", ".llvm.*", name)


def ordered(start, later, sizes):
    """Patterns of the functions, those of the start first."""
    of_pattern = collections.defaultdict(list)
    for name in sizes:
        of_pattern[pattern(name)].append(name)
    groups = set(), set()
    for matched, names in of_pattern.items():
        running = [name for name in names if name in start or name in later]
        # One name may stand for hundreds of instances of a generic function, few of which run.
        # Those are named with their hash, which holds for one compiler and one set of dependencies.
        is_exact = 2 * sum(sizes[name] for name in running) < sum(sizes[name] for name in names)
        for name in running:
            groups[name not in start].add(name if is_exact else matched)
    return [*sorted(groups[0]), *sorted(groups[1] - groups[0])]


def main():
    program = os.path.abspath(sys.argv[1])
    listed = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True)
    symbols = (line.split() for line in listed.stdout.splitlines())
    sizes = {s[3]: int(s[1], 16) for s in symbols if len(s) == 4 and s[2] in "tTwW"}
    if not sizes:
        sys.exit(f"{program} has no symbols; build it with `-- -C strip=none`")
    quit_keys = ["x", "\x7f", "\x04"]
    with tempfile.TemporaryDirectory() as demo, tempfile.TemporaryDirectory() as home:
        agent = pathlib.Path(home, ".pi/agent")
        agent.mkdir(parents=True)
        provider = {"baseUrl": serve(), "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}]}
        (agent / "models.json").write_text(json.dumps({"providers": {"mine": provider}}))
        model = ["--model", "mine/m"]
        start = functions_of(program, demo, [], quit_keys)
        start |= functions_of(program, home, model, quit_keys)
        later = functions_of(program, home, model, ["hello there", "\r", *quit_keys])
        later |= functions_of(program, home, ["--continue"], ["again", "\r", *quit_keys])
        later |= functions_of(program, home, [*model, "--print", "hello"], [])
    ORDER.write_text("\n".join(ordered(start, later, sizes)) + "\n")


main()
