"""Captions about published tables: the numbers of hand-made tables stand in the sentences."""

import pandas as pd

from cnslib.plots.captions import published

CHECK = pd.DataFrame({"consistent": [True, True, False]}, index=["vit", "mae", "dino"])
PARTIAL = pd.DataFrame(
    {"accuracy": ["mean", "drop"], "estimate": [0.69, -0.45], "low": [0.4, -0.8], "high": [0.8, 0.2], "least": [-0.2, -1], "most": [0.9, 1]}
).assign(n=5, counted=[0.94, -0.04])
VERDICTS = ["agrees", "not stated", "differs", "differs, the claim stands", "differs, the claim falls"]
LINES = pd.DataFrame({"verdict": [VERDICTS[0], VERDICTS[2], VERDICTS[4], VERDICTS[1]], "subject": ["a", "b", "size", "c"]})
SCORES = pd.DataFrame(
    [
        (m, s, v)
        for m, row in {"Swin": (0.8, 0.9, 0.5), "ViT": (0.7, 0.7, 0.72)}.items()
        for s, v in zip(("as printed", "with each row's own mean", "by the equations"), row, strict=True)
    ],
    columns=["model", "score", "value"],
)


def test_rows_that_contradict_themselves_are_counted_and_named():
    assert published.averages(CHECK).startswith("2 of 3 rows of Table 5 agree with themselves, 1 not (other colour). n = 3")
    fits = pd.DataFrame({"mean": [0.0038, 0.0065]}, index=["six scales", "five scales"])
    seen = published.averages_seen(CHECK, fits, 0.6)
    assert "contradict themselves: dino." in seen and "means over six scales best (off by 0.0038" in seen and "Kendall's tau 0.60" in seen


def test_readings_are_held_against_the_printed_number():
    caption = published.partial(PARTIAL, -0.358, confidence=0.95, starts=2000)
    finding = "Of what could be meant, 'drop' comes closest to the printed -0.358: -0.45"
    size = "Size: log2 of the parameters; with their number itself it is -0.04"
    assert caption.startswith(f"{finding}. {size}. n = 5 models; bars: 95% of 2,000")
    seen = published.partial_seen(PARTIAL, -0.358)
    assert (
        seen == "1 of 2 readings has the sign of the printed -0.358. It lies within the bars of: drop; and within the extremes of 1 of 2."
    )
    assert published.partial_seen(PARTIAL, -1.5).startswith("1 of 2 readings has the sign")
    assert published.partial_seen(PARTIAL.assign(estimate=-0.1), -0.358).startswith("2 of 2 readings have the sign")
    assert published.printed_p(-0.358, 0.64, 30) == "p of -0.358 with one value per model: 0.64; points it needs: 30"


def test_the_widest_interval_is_named():
    shares = pd.DataFrame({"what": ["fog", "all"], "n": [24, 30000], "estimate": [0.5, 0.37], "low": [0.3, 0.36], "high": [0.7, 0.38]})
    assert published.intervals(shares, confidence=0.95).startswith("The least certain share is 'fog', 50% (30% to 70%). n = 24 to 30,000")
    assert published.intervals_seen(shares).startswith("Most certain: all, 37.0% (36.0% to 38.0%) of 30,000.")


def test_scores_name_the_largest_change_and_the_orders():
    assert published.scores(SCORES, 6).startswith("Computed to the letter, the score of Swin changes most, by -0.300. n = 6")
    seen = published.scores_seen(SCORES)
    assert "not the same by all three. as printed: Swin > ViT; with each row's own mean: Swin > ViT; by the equations: ViT" in seen
    assert "is the same by all three: Swin > ViT." in published.scores_seen(SCORES.assign(value=[3.0, 3, 3, 1, 1, 1]))


def test_the_ledger_is_counted_by_verdict():
    said = "1 lines agree, 2 differ, so that 1 claim falls, and for 1 the papers state nothing. n = 4 lines"
    assert published.ledger(LINES, VERDICTS) == said
    assert "differs, the claim stands (0)" in published.ledger_seen(LINES, VERDICTS)


def test_the_answer_is_one_sentence_about_rows_places_and_claims():
    first = "2 of 3 rows of the paper's large table agree with themselves"
    text = published.answer(LINES, VERDICTS, CHECK)
    where = "tables, texts and released code differ in 2 of the 3 places where the papers state something to compare"
    assert text == f"**Not everywhere: {first}, but {where}, and 1 printed claim cannot be upheld.**"
    assert published.answer(LINES.head(2), VERDICTS, CHECK).endswith(
        "in 1 of the 2 places where the papers state something to compare, and no printed claim falls with it.**"
    )
    agreed = published.answer(LINES.iloc[[0, 3]], VERDICTS, CHECK)
    assert agreed == f"**Yes: {first}, and tables, texts and code agree wherever we compared them (1 times).**"
