"""What the site has besides its written pages: notebooks with their outputs, pictures and verdicts of experiments.

MkDocs calls ``on_files`` and ``on_config`` by their names.
"""

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

from experiments import __main__ as command

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CACHE = ROOT / ".cache" / "notebooks"
GALLERY = ROOT / "docs" / "gallery"
CLAIM = re.compile(r"\*\*([^*]*\d[^*]*)\*\*")


def on_config(config: Any) -> Any:
    """The notebooks' pages, and one of their list."""
    pages = [{_title(path): f"notebooks/{path.stem}.md"} for path in NOTEBOOKS]
    for section in config.nav:
        if "Notebooks" in section:
            section["Notebooks"] = [section["Notebooks"], *pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """The pages that are made."""

    def add(uri: str, content: str | bytes) -> None:
        files.append(File.generated(config, uri, content=content))

    lines = [
        "# Notebooks",
        "",
        "Download them from the folder `notebooks/` of the repository. Each runs in about a minute or less.",
        "",
    ]
    for path in NOTEBOOKS:
        lines.append(f"- [{_title(path)}]({path.stem}.md)")
        body, resources = MarkdownExporter().from_notebook_node(
            executed(path), {"output_files_dir": path.stem, "unique_key": path.stem}
        )
        add(f"notebooks/{path.stem}.md", body)
        for name, content in resources["outputs"].items():
            add(f"notebooks/{name}", content)
    add("notebooks/index.md", "\n".join(lines))
    add("gallery.md", gallery())
    add("reproduce.md", reproduce())
    return files


def _title(path: Path) -> str:
    return nbformat.read(path, 4).cells[0].source.splitlines()[0].lstrip("# ")


def executed(path: Path) -> Any:
    """The notebook with its outputs. It runs again only if it or the package has changed.

    Raises:
        CellExecutionError: a cell raises.
        ValueError: its text claims a number that it does not print.
    """
    sources = [path, *sorted((ROOT / "jaxbandit").rglob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    kept = CACHE / f"{path.stem}-{digest}.ipynb"
    if not kept.exists():
        notebook = nbformat.read(path, 4)
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(
                notebook,
                timeout=600,
                kernel_name="python3",
                coalesce_streams=True,
                resources={"metadata": {"path": folder}},
            )
            client.execute(env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": ""})
        check_claims(path.name, notebook)
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}.partial")
        nbformat.write(notebook, partial)
        partial.replace(kept)
    return nbformat.read(kept, 4)


def check_claims(name: str, notebook: Any) -> None:
    """Every number that the text sets in **bold** is printed by some cell, as it stands in the text.

    Raises:
        ValueError: one is not.
    """
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "\n".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for claim in CLAIM.findall(cell.source):
                for number in re.findall(r"-?\d+(?:\.\d+)?", claim):
                    if not re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", printed):
                        raise ValueError(f"{name}: the text claims {number} (in **{claim}**), which no cell prints")


def _records() -> list[dict[str, Any]]:
    paths = [GALLERY / f"{name}.json" for name in command.NAMES]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def gallery() -> str:
    """Every experiment's picture and verdicts."""
    parts = ["# Gallery", "What `python -m experiments NAME` draws, with the verdict on each claim."]
    for record in _records():
        name = record["experiment"]
        parts += [f"## {name}", command.describe(name), f"![{name}](gallery/{name}.png)"]
        parts.append("\n".join(f"- {_verdict(claim)}" for claim in record["claims"]))
    return "\n\n".join(parts) + "\n"


def reproduce() -> str:
    """The claims that do not hold, with the numbers."""
    parts = [
        "# What does not reproduce",
        "Each claim below is one of a paper, or a goal of ours; the numbers are those of the run in the gallery.",
    ]
    for record in _records():
        failed = [claim for claim in record["claims"] if not claim["holds"]]
        if failed:
            parts += [f"## {record['experiment']}", command.describe(record["experiment"])]
            parts.append(
                "\n".join(f"- {claim['text']}: does not hold. Measured: {claim['measured']}" for claim in failed)
            )
    return "\n\n".join(parts) + "\n"


def _verdict(claim: dict[str, Any]) -> str:
    return f"**{'Holds' if claim['holds'] else 'Does not hold'}**: {claim['text']} ({claim['measured']})"
