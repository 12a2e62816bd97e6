import json

import pytest

from cnslib.core import paths
from cnslib.tools import numbers


@pytest.fixture
def root(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "accuracy.json").write_text(json.dumps({"all": {"2.5": {"n": 12345, "estimate": 0.486}}}))
    (tmp_path / "figures" / "accuracy").mkdir(parents=True)
    (tmp_path / "figures" / "accuracy" / "drop.csv").write_text("shift,scale,estimate\nfog,2.5,0.6\nsnow,2.5,-0.004\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.49<!-- accuracy/all/2.5/estimate -->", None),
        ("49 %<!-- accuracy/all/2.5/estimate -->", None),
        ("0.48<!-- accuracy/all/2.5/estimate -->", "0.48 should be 0.49 (accuracy/all/2.5/estimate)"),
        ("0.60<!-- accuracy/drop.csv: shift=fog, scale=2.5; estimate -->", None),
        ("0.00<!-- accuracy/drop.csv: shift=snow, scale=2.5; estimate -->", None),
        ("<!-- holds: accuracy/all/2.5/estimate > 0.5 -->", "no longer holds: accuracy/all/2.5/estimate > 0.5 (0.486, 0.5)"),
        ("accuracy falls to 0.49 here", "0.49 has no mark"),
        ("95 % intervals, 0.07<!-- paper --> in the paper, `0.123`", None),
    ],
)
def test_a_number_is_compared_at_the_digits_written(root, text, said):
    assert numbers.problems(text, root) == ([said] if said else [])


@pytest.mark.parametrize("key", ["accuracy/some/2.5", "accuracy/drop.csv: scale=2.5; estimate"])
def test_a_mark_that_leads_nowhere_is_an_error_that_names_it(root, key):
    with pytest.raises(KeyError, match=key.split("/")[1].split(":")[0]):
        numbers.value(root, key)


def test_writing_changes_marked_digits_alone(root):
    text = "From 0.11 to 0.48<!-- accuracy/all/2.5/estimate -->, 12,000<!-- accuracy/all/2.5/n --> rows."
    assert numbers.corrected(text, root) == text.replace("0.48", "0.49").replace("12,000", "12,345")


@pytest.mark.parametrize("page", numbers.pages(paths.ROOT), ids=lambda page: page.name)
def test_every_marked_number_of_the_compendium_holds(page):
    found = [problem for text in numbers.texts(page) for problem in numbers.problems(text, paths.ROOT)]
    assert [problem for problem in found if "has no mark" not in problem] == []
