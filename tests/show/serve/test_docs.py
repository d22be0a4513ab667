"""The pages about the server work as they say, and so does the example in shell."""

import re
import shutil

import pytest
from tests.run.cases import quick
from tests.run.clusters import free_port
from tests.show.test_command_line import ROOT, followed

import calamint as cm
from calamint.show.serve.app import describe, make_app

PAGE = (ROOT / "docs" / "api.md").read_text()
SERVE = "calamint serve --storage sqlite:///study.db\n"
TOOLS = [name for name in ("curl", "jq") if shutil.which(name) is None]


@pytest.mark.skipif(bool(TOOLS), reason=f"needs {' and '.join(TOOLS)} (apt: curl, jq)")
def test_the_api_works_as_its_page_says(tmp_path):
    first, second = str(free_port()), str(free_port())
    replaced = {
        ":8000": f":{first}",
        ":8001": f":{second}",
        "--port 8001": f"--port {second}",
        SERVE: f"{SERVE.strip()} --port {first}\n",
        "sh examples/": f"sh {ROOT}/examples/",
    }
    shown = followed("api.md", tmp_path, replaced)
    assert '{"job":{"number":0,"attempt":1,"task":"estimate"' in shown
    assert shown.count('{"used":true}') == 2
    # Both instruments print the same recommendation, once all is measured.
    assert re.search(r"office: job \d+, \{\"loss\":", shown)
    assert re.search(r"hall: job \d+, \{\"load\":", shown)
    assert shown.count('"probability": ') == 2
    study = cm.Study.load(f"sqlite:///{tmp_path / 'study.db'}")
    assert sum(study.summary().evaluations.values()) >= 24
    assert study.history[1].sem == {"load": 0.02}
    assert re.search(r"hplc +│ work +│ hall", shown)
    # Of the server that asks for a token.
    assert '"name":"study"' in shown.split(f"127.0.0.1:{second}")[-1]


def test_the_page_lists_every_request(tmp_path):
    """With the right that it needs, and every field of its body."""
    study = quick(storage=f"sqlite:///{tmp_path / 'a.db'}")
    described = describe(make_app(study.database))
    right, listed = "", {}
    for row in re.findall(r"^\| .*`(?:GET|POST) .*$", PAGE, flags=re.MULTILINE):
        first, requests, meaning = (each.strip() for each in row.strip("|").split("|"))
        right = first or right
        for method, path in re.findall(r"`(GET|POST) (\S+)`", requests):
            path = re.sub(r"^…|^/studies/1", "/studies/{study}", path).replace("/7", "/{number}")
            listed[method.lower(), f"/api{path}"] = right, meaning
    tags = {"looking": "read", "working": "work", "managing": "manage"}
    found = {
        (method, path): (tags[operation["tags"][0]], operation)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert listed.keys() == found.keys()
    for key, (needed, operation) in found.items():
        assert listed[key][0] == needed, key
        if needed != "read" and "requestBody" in operation:
            name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            fields = described["components"]["schemas"][name.rsplit("/", 1)[1]]
            for field in set(fields.get("required", ())) - {"attempt", "reason"}:
                assert f"`{field}`" in listed[key][1], (key, field)


def test_the_dashboard_starts_as_its_page_says(tmp_path):
    port = str(free_port())
    replaced = {SERVE: f"{SERVE.strip()} --port {port}\n"}
    shown = followed("dashboard.md", tmp_path, replaced)
    assert f"is served at http://127.0.0.1:{port}" in shown
    assert "calamint_1_" in shown
    assert cm.Study.load(f"sqlite:///{tmp_path / 'study.db'}").jobs
