"""The documentation site: every public name, notebooks that run and say what they print."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

import jaxbandit as jb

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def pages():
    for needed in ("mkdocs", "nbclient", "nbconvert"):
        pytest.importorskip(needed, reason="needs the extra docs")
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_one_place_in_the_reference():
    texts = [path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md")]
    listed = [name for text in texts for name in re.findall(r"^::: jaxbandit\.(\w+)$", text, re.MULTILINE)]
    assert sorted(name for name in listed if name != "plot") == sorted(jb.__all__)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_in_the_repository_has_no_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_the_numbers_that_its_text_claims(path, pages):
    assert any(cell.get("outputs") for cell in pages.executed(path).cells)


def test_a_claim_that_is_not_printed_is_found(pages):
    v4 = pages.nbformat.v4
    cell = v4.new_code_cell("print(44.5)", outputs=[v4.new_output("stream", text="regret 44.5, 7\n")])
    pages.check_claims(
        "right.ipynb", v4.new_notebook(cells=[cell, v4.new_markdown_cell("It ends at **44.5**, **about 7**.")])
    )
    for wrong in ("**44**", "**4.5**", "**445**", "**44.51**", "**-7**"):
        with pytest.raises(ValueError, match="which no cell prints"):
            pages.check_claims("wrong.ipynb", v4.new_notebook(cells=[cell, v4.new_markdown_cell(wrong)]))
