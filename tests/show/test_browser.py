"""Pages in a real browser: everything is drawn, nothing is asked for, controls and themes work.

Needs Chrome or Chromium; skipped without.
"""

import json
import re
import shutil
import subprocess

import pytest
from tests.show import studies
from tests.show.studies import decoupled

from calamint.show import write_report

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chrome or Chromium: install it to look at pages (apt: chromium)"
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--virtual-time-budget=20000", "--enable-logging=stderr"),
)


def opened(page, tmp_path, *flags, script="document.title = '[]'"):
    """What a script says in the end, after everything was drawn: it sets the title to JSON; and
    the document. The console must be silent: refused requests and mistakes would be there."""
    text = page.read_text().replace("</body>", f"<script>{script}</script></body>")
    page = tmp_path / "scripted.html"
    page.write_text(text)
    done = subprocess.run(
        [
            *(BROWSER, *FLAGS, *flags, f"--user-data-dir={tmp_path / 'profile'}"),
            *("--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1]), done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(decoupled(), tmp_path_factory.mktemp("report") / "study.html")


REQUESTS = "performance.getEntriesByType('resource').map((each) => each.name)"


def test_everything_is_drawn_and_nothing_asked_for(page, tmp_path):
    script = f"document.title = JSON.stringify({REQUESTS})"
    asked, document = opened(page, tmp_path, script=script)
    assert asked == []
    count = page.read_text().count('<section class="plot"')
    assert f'data-drawn="{count}"' in document
    assert document.count('class="main-svg"') >= count


def test_a_request_would_be_noticed(page, tmp_path):
    """The policy of the page refuses it, and the console says so."""
    script = "document.title = '[]'; new Image().src = 'http://127.0.0.1:9/a.png'"
    with pytest.raises(AssertionError, match="Loading the image"):
        opened(page, tmp_path, script=script)


def test_hostile_words_start_nothing(tmp_path):
    page = write_report(studies.hostile(), tmp_path / "hostile.html")
    scripts = "document.querySelectorAll('script').length"
    script = f"document.title = JSON.stringify([{scripts}, {REQUESTS}.length])"
    (count, asked), _ = opened(page, tmp_path, script=script)
    # A script of data for each plot, Plotly's, the page's, and ours.
    assert count == page.read_text().count('<section class="plot"') + 3
    assert asked == 0


def test_controls_choose_what_is_shown(page, tmp_path):
    script = """
    const section = document.getElementById("slices");
    const figure = section.querySelector(".figure");
    const [along, other] = section.querySelectorAll("select");
    const slider = section.querySelector("input");
    const said = [figure.layout.xaxis4 ? "drawn" : "not", slider.parentElement.hidden];
    other.value = 2; other.dispatchEvent(new Event("input"));
    said.push(slider.parentElement.hidden);
    const first = JSON.stringify(figure.data[1].y);
    slider.value = 4; slider.dispatchEvent(new Event("input"));
    said.push(JSON.stringify(figure.data[1].y) !== first);
    said.push(section.querySelector("output").textContent);
    along.value = 1; along.dispatchEvent(new Event("input"));
    said.push(figure.layout.xaxis6.title.text);
    document.title = JSON.stringify(said);
    """
    said, _ = opened(page, tmp_path, script=script)
    # The slider appears when another parameter is chosen, and moves it; axes are chosen, too.
    assert said == ["drawn", True, False, True, "1", "y"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_follows_the_theme(page, tmp_path, dark):
    script = """
    const figure = document.querySelector(".figure");
    const ink = figure.querySelector(".xtick text, .x2tick text").style.fill;
    document.title = JSON.stringify([ink, getComputedStyle(document.body).backgroundColor]);
    """
    flags = ["--blink-settings=preferredColorScheme=0"] if dark else []
    (ink, background), _ = opened(page, tmp_path, *flags, script=script)
    expected = ("rgb(227, 230, 234)", "rgb(22, 25, 29)")
    if not dark:
        expected = ("rgb(34, 48, 60)", "rgb(255, 255, 255)")
    assert (ink, background) == expected
