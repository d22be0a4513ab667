"""The dashboard in a real browser, on a run that goes on meanwhile.

Needs Chrome or Chromium; skipped without.
"""

import re
import shutil
import subprocess
import sys
import textwrap
import time

import pytest
from tests.run.cases import quick
from tests.run.served import serving
from tests.show.studies import HOSTILE

import calamint as cm

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chrome or Chromium: install it to look at pages (apt: chromium)"
)
PAGES = ("", "/jobs", "/jobs/20", "/beliefs", "/decisions", "/resources", "/trust", "/changes")
# Milliseconds that a figure may take while everything else runs.
PATIENCE = 90_000
RUN = """
import time
import calamint as cm

def train(params):
    time.sleep(0.3)
    return 0.3 - 0.1 * params["width"] + 0.2 * (params["dropout"] - 0.3) ** 2

def profile(params):
    print("profiling", params)
    time.sleep(0.1)
    return {"latency": 3 * params["width"]}

if __name__ == "__main__":
    study = cm.Study.load(STORAGE)
    study.run({"train": train, "profile": profile}, evaluations=2000)
"""


def network(storage):
    problem = cm.Problem(
        {"width": cm.Real(0, 1), "dropout": cm.Real(0, 0.6), "kind": cm.Choice("relu", "gelu")},
        minimize="error",
        constraints=["latency <= 2"],
        tasks={
            "train": cm.Task(["error"], runs_on="gpu", cost=3.0),
            "profile": cm.Task(["latency"], runs_on="cpu"),
        },
        resources={"gpu": 1, "cpu": 1},
    )
    return cm.Study(problem, storage, seed=0, model=cm.Model(hyperparameters="map"))


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def look(browser):
    """Opens pages; what they ask for, and what they complain about, is kept."""
    contexts = []

    def opened(server, path="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(f"{server}{path}")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A study that runs, and its server: as two programs."""
    folder = tmp_path_factory.mktemp("live")
    storage = f"sqlite:///{folder / 'a.db'}"
    study = network(storage)
    study.enqueue("train", {"width": 0.5, "dropout": 0.1, "kind": "relu"})
    (folder / "run.py").write_text(f"STORAGE = {storage!r}\n{textwrap.dedent(RUN)}")
    run = subprocess.Popen([sys.executable, folder / "run.py"], stdout=subprocess.DEVNULL)
    server = subprocess.Popen(
        [sys.executable, "-m", "calamint", "serve", "--port", "0", "--storage", storage],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    address = re.search(r"http://\S+", server.stdout.readline())[0]
    while study.summary().evaluations["train"] < 12:
        assert run.poll() is None
        time.sleep(0.1)
    yield study, address
    for process in (run, server):
        process.terminate()
        process.wait(30)
    server.stdout.close()


def drawn(page, name):
    """A figure, once it is drawn."""
    figure = page.locator(f"section.plot#{name} .main-svg").first
    figure.wait_for(timeout=PATIENCE)
    return page.locator(f"section.plot#{name}")


def settled(page):
    """Once everything that was asked for is there."""
    page.locator("[aria-busy]").first.wait_for(state="detached", timeout=PATIENCE)
    return page


def count_of(page, state):
    return int(page.locator(f"#count-{state} strong").inner_text().replace(",", ""))


def test_numbers_change_without_reload(live, look):
    study, server = live
    page = look(server, "/studies/1")
    page.evaluate("window.mark = 1")
    before = count_of(page, "done")
    page.wait_for_timeout(500)
    until = time.monotonic() + 60
    while count_of(page, "done") < before + 5 and time.monotonic() < until:
        page.wait_for_timeout(100)
    assert count_of(page, "done") >= before + 5
    events = page.locator("#now td.time").first.inner_text()
    until = time.monotonic() + 60
    while page.locator("#now td.time").first.inner_text() <= events:
        assert time.monotonic() < until
        page.wait_for_timeout(100)
    assert page.evaluate("window.mark") == 1
    assert page.locator("#connection").inner_text() == ""
    text = settled(page).locator(".answer").inner_text()
    assert re.search("The recommended input is expected to have error|Use width = ", text)
    progress = drawn(page, "progress")
    said = page.locator("#drawn-progress").get_attribute("hx-get")
    until = time.monotonic() + 60  # figures go on, too
    while page.locator("#drawn-progress").get_attribute("hx-get") == said:
        assert time.monotonic() < until
        page.wait_for_timeout(200)
    assert progress.is_visible()
    assert page.complaints == []
    assert study.summary().evaluations["train"] > 12


def until_news(page, part, count=3):
    """Waits until a part of a page was renewed some times."""
    page.evaluate(
        """([part, count]) => new Promise((done) => {
            let seen = 0;
            document.body.addEventListener("htmx:afterSwap", (event) => {
                if (event.target.id === part && ++seen === count) setTimeout(done, 200);
            });
        })""",
        [part, count],
    )


def test_what_was_scrolled_stays_where_it_is(live, look):
    page = look(live[1], "/studies/1/jobs", viewport={"width": 390, "height": 800})
    page.keyboard.press("Tab")
    page.locator("#jobs tbody a").first.focus()
    focused = "getComputedStyle(document.activeElement)"
    assert page.evaluate(f"[{focused}.outlineStyle, {focused}.outlineOffset]") == ["solid", "-2px"]
    # At once: an element that was found before may have been replaced meanwhile.
    scrolled = """document.querySelector("#jobs .scroll").scrollLeft"""
    page.evaluate(f"{scrolled} = 150")
    until_news(page, "jobs")
    assert page.evaluate(scrolled) == 150


def test_names_have_room_on_phones(tmp_path, look):
    """The way back beside the study's name; long names of parameters do not hide their values."""
    problem = cm.Problem({"n" * 60: cm.Real(0, 1), "x": cm.Real(0, 1)}, minimize="f")
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}")
    study.ask()
    with serving(study.database) as server:
        page = look(server, "/studies/1/jobs/0", viewport={"width": 390, "height": 800})
        back, name = (page.locator(f".where {each}").bounding_box() for each in ("a", "b"))
        assert back["y"] == pytest.approx(name["y"], abs=2)
        facts = """document.querySelector("table.facts").parentElement"""
        assert page.evaluate(f"{facts}.scrollWidth <= innerWidth - 30")
        shade = """getComputedStyle(document.querySelector("div.scroll")).backgroundAttachment"""
        assert page.evaluate(shade) == "local, local, scroll, scroll"
        page.locator(".where a").click()
        page.wait_for_url(f"{server}/")


def test_selected_text_stays_selected(live, look):
    page = look(live[1], "/studies/1/jobs")
    select = """() => getSelection().selectAllChildren(document.querySelector("#jobs td.line"))"""
    page.evaluate(select)
    text = page.evaluate("getSelection().toString()")
    assert "width = " in text
    newest = page.locator("#jobs tbody th").first
    before = newest.inner_text()
    page.wait_for_timeout(3000)
    assert page.evaluate("getSelection().toString()") == text
    assert newest.inner_text() == before
    page.evaluate("getSelection().removeAllRanges()")
    until_news(page, "jobs", 1)
    assert newest.inner_text() != before


def test_a_figure_stays_zoomed_and_its_data_open(live, look):
    page = look(live[1], "/studies/1")
    figure = drawn(page, "progress")
    figure.scroll_into_view_if_needed()
    box = figure.locator(".nsewdrag").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    figure.locator("summary").click()
    said = "document.querySelector('#progress .figure').layout.xaxis.range"
    zoomed = page.evaluate(said)
    assert zoomed[0] > 0
    until_news(page, "drawn-progress", 2)
    assert page.evaluate(said) == pytest.approx(zoomed)
    assert figure.locator("details").get_attribute("open") is not None
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], middle)
    until_news(page, "drawn-progress", 1)
    assert page.evaluate(said) != pytest.approx(zoomed, abs=0.5)


def test_studies_are_listed_and_change(live, look):
    page = look(live[1])
    row = page.locator("tr", has=page.locator("#study-1"))
    before = row.inner_text()
    page.wait_for_timeout(6000)
    assert row.inner_text() != before
    page.locator("#study-1").click()
    assert page.title() == "Overview – study – Calamint"


def test_every_page_is_complete_and_asks_nobody_else(live, look):
    for path in PAGES:
        page = settled(look(live[1], f"/studies/1{path}"))
        assert page.locator("main h1").count() == 1
        assert page.locator("section.plot").count() == page.locator(".main-svg").count() // 3
        assert [url for url in page.asked if not url.startswith(live[1])] == []
        assert page.complaints == [], path
        page.context.close()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        *((390, "dark"), (1600, "light")),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((390, "light"), (1600, "dark"))),
    ],
)
def test_pages_fit_and_are_accessible(width, scheme, live, look):
    """Also what axe-core finds: contrast, names, landmarks, tables, focus."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    for path in ("", *(f"/studies/1{each}" for each in (*PAGES, "/jobs/20/amend", "/enqueue"))):
        # Only axe-core itself is let past the policy.
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = settled(look(live[1], path, bypass_csp=True, **options))
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, (path, overflow)
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        said = [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious]
        assert said == [], path
        page.context.close()


def test_beliefs_are_explored(live, look):
    page = look(live[1], "/studies/1/beliefs")
    drawn(page, "contours")
    drawn(page, "gains")
    shown = page.locator("#drawn-belief").get_attribute("hx-get")
    assert "dropout" in shown
    page.locator("#x").select_option("dropout")
    page.wait_for_url(re.compile("x=dropout"))
    page.locator("#y option[value=width]").wait_for(state="attached")  # the form is a new one
    page.locator("#y").select_option("")
    page.wait_for_url(re.compile("x=dropout&y=&"))
    drawn(page, "slices")
    slider = page.get_by_role("slider", name="width")
    slider.focus()
    value = slider.get_attribute("aria-valuetext")
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"at\.0=\d+"))
    page.wait_for_timeout(500)
    assert page.get_by_role("slider", name="width").get_attribute("aria-valuetext") != value
    # Whoever moves a slider with the keyboard still has it.
    assert page.evaluate("document.activeElement.name") == "at.0"
    drawn(page, "slices")
    assert "bits from error" in page.locator("section.plot#slices").inner_text()
    page.go_back()
    page.wait_for_timeout(500)
    assert page.complaints == []


def test_the_reason_for_a_decision_is_found(live, look):
    page = look(live[1], "/studies/1/decisions")
    page.locator("#chosen tbody tr", has_text="full").first.locator("a").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    why = page.locator("#why").inner_text()
    assert re.search(r"expected to yield (< )?[\d.]+ bits about the constrained optimum", why)
    assert "Bits by function" in why
    assert "Decided by a full update" in why


def test_output_is_shown(live, look):
    study, server = live
    number = next(job.number for job in study.jobs if job.task == "profile" and job.state == "done")
    page = look(server, f"/studies/1/jobs/{number}")
    page.get_by_text("Output").click()
    page.locator("pre", has_text="profiling {'width'").wait_for()


def test_a_result_is_told_and_amended_by_hand(tmp_path, look):
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")
    study.ask(task="price")
    with serving(study.database) as server:
        page = look(server, "/studies/1/jobs")
        page.get_by_role("link", name="job 0").click()
        page.get_by_role("link", name="Tell").click()
        page.get_by_label("f", exact=True).fill("0,5")
        page.get_by_role("button", name="Tell").click()
        assert "has a comma" in page.get_by_role("alert").inner_text()
        assert page.get_by_label("f", exact=True).input_value() == "0,5"
        assert page.evaluate("document.activeElement.id") == "value.0"
        page.get_by_label("f", exact=True).fill("0.5")
        page.get_by_role("button", name="Tell").click()
        page.get_by_role("status").filter(has_text="The results of job 0 were recorded.").wait_for()
        assert study.history[0].values == {"f": 0.5}
        page.get_by_role("link", name="Amend").click()
        page.get_by_label("f", exact=True).fill("0.25 ± 0.01")
        page.get_by_label("Reason").fill("a typo")
        page.get_by_role("button", name="Amend").click()
        page.get_by_role("status").filter(has_text="Job 0 was amended.").wait_for()
        assert study.history[0].values == {"f": 0.25}
        page.get_by_role("link", name="Changes").click()
        page.wait_for_url(re.compile("/changes"))
        row = page.locator("#events tbody tr").first.inner_text()
        assert "amended" in row
        assert "a typo" in row
        assert "local" in row


def test_a_held_job_is_released(tmp_path, look):
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}", retries=1, pause=0.0)
    with serving(study.database) as server:
        page = look(server, "/studies/1")
        page.locator("#start").wait_for()
        for _ in range(2):
            study.fail(study.ask(task="price"), "no space left", cause="infrastructure")
        page.locator("#drawn-progress").wait_for()  # it appears by itself
        page.locator("#held").click()
        page.get_by_role("link", name="job 0").click()
        page.get_by_role("link", name="Release").click()
        page.get_by_role("button", name="Release").click()
        page.get_by_role("status").filter(has_text="Job 0 was released.").wait_for()
        assert study.jobs[0].state == "waiting"


def test_what_is_done_elsewhere_is_seen_on_the_page_of_a_job(tmp_path, look):
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")
    job = study.ask(task="price")
    with serving(study.database) as server:
        page = look(server, "/studies/1/jobs/0")
        page.locator("#do-tell").focus()
        study.tell(job, {"f": 1.0})
        page.locator("#do-amend").wait_for(timeout=20_000)
        assert page.locator("#job .state").first.inner_text() == "done"


def test_a_server_that_ends_is_noticed_and_found_again(tmp_path, look):
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")
    with serving(study.database) as server:
        page = look(server, "/studies/1")
        page.wait_for_timeout(500)
    page.get_by_text("Connection lost: the page may be out of date").wait_for(timeout=20_000)
    study.ask()
    with serving(study.database, port=int(server.rsplit(":", 1)[1])):
        page.locator("#count-running strong", has_text="1").wait_for(timeout=30_000)
        assert page.locator("#connection").inner_text() == ""


def test_any_words(tmp_path, look):
    options = list(HOSTILE.values())
    problem = cm.Problem({"x": cm.Choice(*options), "y": cm.Real(0, 1)}, minimize="f")
    name = HOSTILE["markup"] + HOSTILE["entity"]
    study = quick(problem, f"sqlite:///{tmp_path / 'a.db'}", name=name)
    for index, word in enumerate(options):
        study.enqueue("evaluate", {"x": word, "y": 0.1 * index})
        study.tell(study.ask(), {"f": float(index)})
        study.amend(index, {"f": index + 0.5}, reason=word)
    with serving(study.database) as server:
        for path in ("", *(f"/studies/1{each}" for each in (*PAGES, "/jobs/0/amend"))):
            if path.endswith("/jobs/20"):
                path = "/studies/1/jobs/3"
            page = look(server, path)
            page.on("dialog", lambda dialog: pytest.fail(dialog.message))
            settled(page)
            assert page.locator("h1").count() == 1
            assert page.complaints == [], path
            page.context.close()
