#!/usr/bin/env python3
"""Refresh the built-in models from the npm package of the original's catalog.

    contrib/models.py              # the newest version
    contrib/models.py 1.6.0        # this version
    contrib/models.py --check DIR  # compare with an unpacked package, write nothing

Writes src/ai/models/data/models/*.json and the date in src/ai/models/catalog/builtin.rs.
Afterwards run `cargo test` and `PI_BLESS=1 cargo bless`, and read the diff: prices and
default models change too. Default models are in src/ai/models/vendors.rs.
"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
from datetime import datetime

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "src/ai/models/data/models"
VENDORS = ROOT / "src/ai/models/vendors.rs"
BUILTIN = ROOT / "src/ai/models/catalog/builtin.rs"
PACKAGE = "@earendil-works/pi-ai"

# VERTEX_TEMPLATE in src/ai/models/vertex.rs.
VERTEX_URL = "https://{location}-aiplatform.googleapis.com"
# Providers of which only some models are built in: those listed now.
SELECTED = {"openrouter"}
# Levels that the package lists and the provider's own documentation does not:
# https://ai.google.dev/gemini-api/docs/thinking
UNDOCUMENTED_LEVELS = {
    (provider, model): {"xhigh": None}
    for provider in ("google", "google-vertex")
    for model in ("gemini-4-hydrogen", "gemini-4-neon")
}


def download(version, folder):
    """Unpacks the package into `folder` and returns its root."""
    command = ["npm", "pack", "--silent", f"{PACKAGE}@{version}"]
    name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(pathlib.Path(folder) / name) as archive:
        archive.extractall(folder, filter="data")
    return pathlib.Path(folder) / "package"


def vendor_urls():
    """Base URLs by vendor id, as the table of vendors has them."""
    text = VENDORS.read_text(encoding="utf-8")
    rows = re.findall(r'id: "([^"]+)",\s+name: "[^"]*",\s+base_url: (?:"([^"]*)"|VERTEX_TEMPLATE)', text)
    return {provider: url or VERTEX_URL if provider == "google-vertex" else url for provider, url in rows}


def row(provider, model, vendor_url):
    """One model in the format of the built-in lists."""
    out = {"id": model["id"], "name": model["name"], "api": model["api"]}
    if model["baseUrl"] != vendor_url:
        out["baseUrl"] = model["baseUrl"]
    if model["reasoning"]:
        out["reasoning"] = True
    out["input"] = model["input"]
    cost = dict(model["cost"])
    if "tiers" in cost:
        cost["tiers"] = [{rate: value for rate, value in tier.items() if value} for tier in cost["tiers"]]
    out["cost"] = {rate: value for rate, value in cost.items() if value}
    out["contextWindow"] = model["contextWindow"]
    out["maxTokens"] = model["maxTokens"]
    if model.get("thinkingLevelMap"):
        levels = dict(model["thinkingLevelMap"])
        levels.update(UNDOCUMENTED_LEVELS.get((provider, model["id"]), {}))
        out["thinkingLevelMap"] = levels
    for name in ("compat", "promptCache"):
        if model.get(name):
            out[name] = model[name]
    return out


def lists(package):
    """The text of each list that is built in."""
    urls = vendor_urls()
    for path in sorted(LISTS.glob("*.json")):
        provider = path.stem
        source = json.loads((package / f"dist/providers/data/{path.name}").read_text(encoding="utf-8"))
        models = [model for api in source.values() for model in api.values()]
        models = [model for model in models if model.get("type", "chat") == "chat"]
        if provider in SELECTED:
            listed = {model["id"] for model in json.loads(path.read_text(encoding="utf-8"))}
            gone = listed - {model["id"] for model in models}
            if gone:
                print(f"{provider}: no longer offered: {', '.join(sorted(gone))}", file=sys.stderr)
            models = [model for model in models if model["id"] in listed]
        rows = [row(provider, model, urls[provider]) for model in models]
        rows = [json.dumps(fields, ensure_ascii=False, separators=(",", ":")) for fields in rows]
        yield path, "[\n " + ",\n ".join(rows) + "\n]\n"


def date(package):
    """`builtin.rs` with the date at which the package was generated."""
    manifest = json.loads((package / "dist/providers/data/.manifest.json").read_text(encoding="utf-8"))
    generated = datetime.fromisoformat(manifest["generatedAt"].replace("Z", "+00:00")).replace(second=0, microsecond=0)
    text = BUILTIN.read_text(encoding="utf-8")
    text = re.sub(r'LISTED: &str = "[^"]*"', f'LISTED: &str = "{generated:%Y-%m-%dT%H:%M:00.000Z}"', text)
    return re.sub(r"LISTED_MS: u64 = [0-9_]+", f"LISTED_MS: u64 = {int(generated.timestamp()) * 1000:_}", text)


def main():
    arguments = sys.argv[1:]
    is_check = arguments[:1] == ["--check"]
    if len(arguments) > (2 if is_check else 1) or (is_check and len(arguments) < 2) or "--help" in arguments:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(arguments[1]) if is_check else download(arguments[0] if arguments else "latest", folder)
        changed = [
            (path, text)
            for path, text in [*lists(package), (BUILTIN, date(package))]
            if path.read_text(encoding="utf-8") != text
        ]
    for path, text in changed:
        print(("differs: " if is_check else "changed: ") + str(path.relative_to(ROOT)))
        if not is_check:
            path.write_text(text, encoding="utf-8")
    sys.exit(1 if is_check and changed else 0)


main()
