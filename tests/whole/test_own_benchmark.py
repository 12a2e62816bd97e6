"""own.yaml, the example of docs/own_benchmark.md."""

from cnslib.core import paths
from cnslib.core.settings import read

STEPS = ["world", "inversion", "sliders", "generation", "filtering", "evaluation", "accuracy"]


def test_the_page_shows_the_file_which_is_accepted_and_the_steps():
    page, own = ((paths.ROOT / name).read_text() for name in ("docs/own_benchmark.md", "own.yaml"))
    assert f"```yaml\n{own}```" in page and read.load("params.yaml", "own.yaml")["base"].scales[0] < 0
    named = [word for line in page.splitlines() if line.startswith("    cns run --overlay own.yaml") for word in line.split()[4:]]
    assert named == STEPS
