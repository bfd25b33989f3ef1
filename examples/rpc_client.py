#!/usr/bin/env python3
"""Asks pi in RPC mode and prints the answer as it arrives."""

import json
import os
import subprocess
import sys


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: rpc_client.py PROMPT [PI OPTION]...", file=sys.stderr)
        return 2
    pi = os.environ.get("PI", "pi")
    process = subprocess.Popen(
        [pi, "--mode", "rpc", *sys.argv[2:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def send(**command: object) -> None:
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()

    send(id="1", type="prompt", message=sys.argv[1])
    failed = False
    # Lines end with a line feed alone, as in a file that is read line by line.
    for line in process.stdout:
        event = json.loads(line)
        match event["type"]:
            case "message_update":
                update = event["assistantMessageEvent"]
                if update["type"] == "text_delta":
                    print(update["delta"], end="", flush=True)
            case "tool_execution_start":
                print(f"\n[{event['toolName']} {json.dumps(event['args'])}]")
            case "extension_ui_request" if event["method"] == "select":
                # This client has nobody to ask.
                send(type="extension_ui_response", id=event["id"], cancelled=True)
            case "agent_settled":
                print()
                send(id="2", type="get_session_stats")
            case "response" if not event["success"]:
                print(f"pi: {event['error']}", file=sys.stderr)
                failed = True
                break
            case "response" if event.get("id") == "2":
                stats = event["data"]
                print(f"{stats['tokens']['total']} tokens, ${stats['cost']:.4f}", file=sys.stderr)
                break
    process.stdin.close()
    return process.wait() or int(failed)


if __name__ == "__main__":
    sys.exit(main())
