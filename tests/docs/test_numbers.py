"""Numbers in the documentation: what was measured stands in a file that the section names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"benchmarks/results/([\w.-]+)")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-−+]?\d+)?(?![\w.]*\w)")
# A measurement has a decimal point, an exponent, a unit, or counts runs.
MEASURED = re.compile(
    r"(?<![\w.])(?:\d+\.\d+(?:e[-−+]?\d+)?|\d+e[-−+]?\d+|"
    r"\d+(?= ?%| ms\b| s\b| of \d+ (?:runs|rep)))(?![\w.]*\w)"
)
# Numbers that define something: defaults, settings of an experiment, known optima, versions.
DEFINED = {
    "README.md": {"3.11": "Python", "95": "an interval"},
    "index.md": {"3.11": "Python"},
    "changing.md": {"90": "an example"},
    "deciding.md": {
        "0.1": "an example of γ",
        "8": "an example of γ",
        "80": "an example of γ",
        "0.01": "the least probability of success; δ",
        "0.05": "δ, and noise",
        "40": "the disc's share of the square",
    },
    "model.md": {
        "1e6": "an example",
        "0.1": "a share",
        "90": "an interval",
        "95": "an interval",
        "0.5": "a prior",
        "1.0": "a prior",
        "0.7": "a prior",
        "1e-6": "a prior",
        "4.0": "a prior",
        "0.05": "δ",
    },
    "settings.md": {"0.600": "optimum", "3.32": "optimum"},
    "information.md": {"0.47": "a distance", "0.1": "a distance"},
    "methods.md": {"0.05": "δ"},
    "clusters.md": {"14000": "an example", "9000": "an example"},
    "plots.md": {"95": "an interval", "0.8": "an example", "80": "an example"},
    "results.md": {
        "95": "an interval",
        "0.07": "a length-scale",
        "0.1": "a length-scale; γ",
        "0.01": "a noise variance",
        "0.05": "δ",
        "0.95": "1 − δ",
        "0.75": "a minimum",
        "0.2": "a limit",
        "7.0": "reported in the paper",
        "0.6": "reported in the paper",
        "4": "reported in the paper",
        "100": "what an infeasible answer counts",
        "1.2": "a limit",
        "1.3": "seconds of a decision in the paper",
    },
    "differences.md": {
        "0.47": "a distance",
        "0.1": "a distance",
        "0.05": "a step size",
        "1.15": "a step size",
        "6.1": "a section of the paper",
        "0.1954": "printed in the paper",
        "0.4404": "printed in the paper",
    },
}


def sections(page):
    """Text outside code blocks, by heading."""
    text = re.sub(r"^ *```.*?^ *```|^    .*?$", "", page.read_text(), flags=re.S | re.M)
    return re.split(r"^#+ .*$", text, flags=re.M)


def measured_numbers(text):
    """Outside inline code, links and versions such as 0.1.0."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|https?://\S+", "", text)
    return [word.replace("−", "-") for word in MEASURED.findall(text)]


def stored_numbers(files):
    text = " ".join(file.read_text() for file in files if file.suffix in (".md", ".txt"))
    return {float(word.replace("−", "-")) for word in NUMBER.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_measured_numbers_are_in_a_result_file_that_their_section_names(page):
    defined, used, missing = DEFINED.get(page.name, {}), set(), []
    for section in sections(page):
        files = [RESULTS / name for name in dict.fromkeys(NAMED.findall(section))]
        for file in files:
            assert file.exists(), f"{page.name} names {file.name}, which is not there"
        stored = stored_numbers(files)
        for word in measured_numbers(section):
            if word in defined:
                used.add(word)
            elif float(word) not in stored:
                missing.append((word, section.strip()[:60]))
    assert missing == []
    assert used == set(defined), "numbers that no longer occur"


def test_a_changed_number_is_noticed():
    page = (ROOT / "docs" / "methods.md").read_text()
    stored = stored_numbers({RESULTS / name for name in NAMED.findall(page)})
    numbers = [word for word in measured_numbers(page) if word not in DEFINED["methods.md"]]
    assert len(numbers) > 50
    assert all(float(word) in stored for word in numbers)
    assert not any(float(word) * 1.001 in stored for word in numbers if float(word))
