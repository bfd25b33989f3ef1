"""Harbor agent that runs this pi: one static binary in place of Node and a package.

harbor run -d terminal-bench@2.0 -m anthropic/claude-sonnet-5-5 --agent-import-path pi_agent:StaticPi
"""

import os
from pathlib import Path

from harbor.agents.installed.pi import Pi

BINARY = Path(os.environ.get("PI_BINARY", "target/x86_64-unknown-linux-musl/release/pi"))
# Harbor's command loads nvm before it runs pi. A limit of turns ends with exit code 3, which
# Harbor would take for a failure of the agent.
INSTALL = r"""set -e
chmod 755 /opt/pi
printf '#!/bin/sh\n/opt/pi "$@"; code=$?; [ $code = 3 ] && code=0; exit $code\n' > /usr/local/bin/pi
chmod 755 /usr/local/bin/pi"""


class StaticPi(Pi):
    @staticmethod
    def name():
        return "pi-static"

    def get_version_command(self):
        return "pi --version"

    async def install(self, environment):
        if self.mcp_servers:
            raise ValueError("pi has no MCP servers yet; run without them")
        await environment.upload_file(BINARY, "/opt/pi")
        await self.exec_as_root(environment, command=INSTALL)
        await self.exec_as_agent(environment, command="mkdir -p ~/.nvm; touch ~/.nvm/nvm.sh; pi --version")

    def build_cli_flags(self):
        turns = self.options.max_turns
        return " ".join([super().build_cli_flags(), f"--max-turns {turns}" if turns else ""]).strip()
