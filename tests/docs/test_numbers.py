"""Numbers in the documentation: those that were measured stand in the file that is named beside
them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"benchmarks/results/([\w.-]+)")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-−]?\d+)?(?![\w.]*\w)")


def paragraphs(page):
    """Text outside code blocks, in paragraphs."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M)
    return [part for part in re.split(r"\n\s*\n", text) if part.strip()]


def numbers(text):
    """Measured numbers: with a decimal point or an exponent, outside inline code and links."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "", text)
    return [word for word in NUMBER.findall(text) if "." in word or "e" in word]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_beside_a_result_file_are_in_it(page):
    missing = []
    for part in paragraphs(page):
        files = [ROOT / "benchmarks" / "results" / name for name in NAMED.findall(part)]
        if not files:
            continue
        for file in files:
            assert file.exists(), f"{page.name} names {file.name}, which is not there"
        stored = " ".join(file.read_text() for file in files if file.suffix in (".md", ".txt"))
        found = {float(word.replace("−", "-")) for word in NUMBER.findall(stored)}
        missing += [
            (word, part[:60])
            for word in numbers(part)
            if float(word.replace("−", "-")) not in found
        ]
    assert missing == []
