import pandas as pd

from cnslib.core.settings.read import start
from cnslib.tools import play

FIRST = pd.Series({"shift": "heavy snow", "class": "sneaker", "seed": 20})


def test_turning_the_controls_shows_the_stored_predictions_of_the_trajectory(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "here")
    run = start("failure", "params.yaml", "")
    widgets = play.turn(run, FIRST)
    stored = pd.read_parquet(run.layout.artifacts("evaluation") / "resnet.parquet").query("seed == 20")
    for shift, name in (("heavy snow", "sneaker"), ("heavy fog", "bag")):
        widgets.children[0].value, widgets.children[1].value = shift, name
        widgets.children[3].value = 2.5
        expected = stored[(stored["class"] == name) & stored["shift"].isin(["unshifted", shift])].sort_values("scale")["top1"]
        assert widgets.result.data.loc["resnet"].tolist() == expected.astype(str).tolist()
