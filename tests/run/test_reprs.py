"""What notebooks and terminals show of studies, problems, jobs and recommendations."""

from html.parser import HTMLParser

import calamint as cm

HOSTILE = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def study():
    space = {"x": cm.Real(0, 1), "kind": cm.Choice(HOSTILE, "b")}
    problem = cm.Problem(space, minimize="cost", constraints=["load <= 1"])
    made = cm.Study(problem, name="a & b", acquisition="random", seed=1)
    for x in (0.1, 0.5, 0.9):
        made.add({"x": x, "kind": HOSTILE}, {"cost": (x - 0.4) ** 2, "load": x})
    return made


def test_notebooks_show_tables_in_which_nothing_is_run():
    made = study()
    job = made.ask()
    best = made.recommend()
    for each, words in (
        (made, ["a & b", "evaluations", "1 running", "last recommendation"]),
        (made.problem, ["Minimise cost", "load <= 1", HOSTILE]),
        (job, ["Job 0", "kind", "local"]),
        (best, ["feasible with probability", "objective"]),
    ):
        shown = Tags(each._repr_html_())
        assert "script" not in shown.tags
        for word in words:
            assert word in shown.text, (word, shown.text)


def test_a_study_says_where_it_stands():
    made = study()
    assert str(made) == "Study 'a & b' in sqlite://: evaluations 0 by evaluate"
    made.tell(made.ask(), {"cost": 1.0, "load": 0.5})
    made.fail(made.ask(), "no")
    made.recommend()
    made.tell(made.ask(), {"cost": 2.0, "load": 0.5})
    assert "evaluations 3 by evaluate; jobs 1 failed; last recommendation x = " in str(made)
    assert str(made).endswith("(1 result since)")
    assert repr(made) == "<Study 'a & b' in sqlite://>"
