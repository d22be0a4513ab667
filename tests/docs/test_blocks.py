"""Every code block that a reader may copy works."""

import re
from pathlib import Path

import pytest

import calamint as cm

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "documentation"}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_toml_blocks_are_specs(page):
    for block in blocks(page, "toml"):
        problem = cm.Problem.from_toml(block)
        assert cm.Problem.from_toml(problem.to_toml()) == problem


def shown_blocks(page):
    """The Python blocks whose output is shown: those that print and do not catch."""
    return [block for block in blocks(page, "python") if "print(" in block and "try:" not in block]


def words_and_numbers(text):
    """The text without its decimal numbers, and these: a search depends on the processor a bit."""
    number = r"\d+\.\d+"
    return re.sub(number, "#", text), [float(each) for each in re.findall(number, text)]


def test_the_readme_shows_what_its_code_prints(capsys):
    page = ROOT / "README.md"
    shown = blocks(page, "text")
    for block, text in zip(shown_blocks(page), shown, strict=True):
        exec(block, {})
        words, numbers = words_and_numbers(capsys.readouterr().out)
        expected, about = words_and_numbers(text)
        assert words == expected
        assert numbers == pytest.approx(about, rel=0.05)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target
