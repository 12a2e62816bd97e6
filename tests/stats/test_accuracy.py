import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xarray as xr
from tiny_answers import HAND, SCALES, SETTINGS, errors, estimates, falling, predictions, random_predictions
from tiny_settings import resampled

from cnslib.core import tables
from cnslib.core.names import UNSHIFTED
from cnslib.core.settings.method import OBJECTS, OTHER, SAME
from cnslib.stats import accuracy, bootstrap


def accuracies(found: xr.DataArray) -> pd.DataFrame:
    return accuracy.interval(1 - found, share=True)


def drops(found: xr.DataArray) -> pd.DataFrame:
    return accuracy.interval(accuracy.drop(found))


def against(table: pd.DataFrame, reference: str, units: bool = True) -> pd.DataFrame:
    wrong = accuracy.wrong_predictions(table)
    sides = [accuracy.drop(average(wrong, SETTINGS)) for average in (accuracy.by_shift, accuracy.by_unit)]
    samples, each = (side - side.sel(model=reference, drop=True) for side in sides)
    return accuracy.interval(samples, units=each if units else None)


def test_three_trajectories_at_three_scales_counted_by_hand():
    found = errors(predictions(HAND))
    assert found.dims == ("resample", "shift", "model", "scale") and found["n"].to_numpy().tolist() == [3, 3]
    assert estimates(accuracies(found), shift="heavy snow", model="resnet") == pytest.approx([1, 2 / 3, 2 / 3])
    assert estimates(drops(found), shift="heavy snow", model="alexnet") == pytest.approx([0, 2 / 3, 1])
    assert estimates(against(predictions(HAND), "alexnet"), shift=accuracy.ALL, model="resnet") == pytest.approx([0, -1 / 3, -2 / 3])
    assert estimates(accuracies(found.mean("model")), shift=accuracy.ALL) == pytest.approx([1, 0.5, 1 / 3])
    assert estimates(accuracy.corruption_error(found, reference="alexnet"), shift=accuracy.MEAN) == pytest.approx([1, 2 / 5])
    assert set(accuracies(found)["n"]) == {3} and accuracy.wrong_predictions(predictions(HAND)).dtype == bool


def test_shares_of_trajectories_that_are_all_alike_have_wilsons_interval():
    """Twelve of twelve right, then twelve of twelve wrong; where they differ the interval stays that of the resamples."""
    words = {"alexnet": ["..x"] * 12, "resnet": [".xx"] * 6 + ["..x"] * 6}
    table = accuracies(errors(predictions(words))).query("shift == @accuracy.ALL").set_index(["model", "scale"])
    right, wrong = (bootstrap.counted(hits, 12, confidence=0.95) for hits in (12, 0))
    for place, expected in ((("alexnet", 0.5), right), (("alexnet", 1.0), wrong), (("resnet", 0.0), right)):
        assert table.loc[place, ["n", "estimate", "low", "high"]].to_dict() == pytest.approx(expected)
    mixed = table.loc[("resnet", 0.5)]
    assert 0 < mixed["low"] < 0.5 < mixed["high"] < 1 and mixed["low"] != pytest.approx(bootstrap.counted(6, 12, confidence=0.95)["low"])


def test_rce_is_the_mean_of_the_shifts_ratios_not_the_ratio_of_the_pooled_sums():
    own = {"heavy snow": [0.8, 0.8], "heavy fog": [0.8, 0.7], "heavy rain": [0.9, 0.6]}
    reference = {"heavy snow": [0.8, 0.7], "heavy fog": [0.5, 0.4], "heavy rain": [0.5, 0.4]}
    parts = [
        predictions({"alexnet": falling([0.9, *reference[shift]], 100), "resnet": falling([0.9, *own[shift]], 100)}, shift) for shift in own
    ]
    table = accuracy.relative_corruption_error(errors(pd.concat(parts)), reference="alexnet")
    assert estimates(table, model="resnet") == pytest.approx([0.3 / 0.9, 0.3 / 0.9, 0.2 / 0.3, 4 / 9])  # fog, rain, snow, mean


# Digitised from the figures of the authors' results notebook; Table 5 has the pooled curve rounded to two digits.
POOLED = [0.902, 0.898, 0.884, 0.848, 0.797, 0.717]
CARTOON = [0.909, 0.899, 0.826, 0.639, 0.507, 0.428]


def test_published_curves_of_resnet18_give_the_published_drops():
    scales = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    cartoon = drops(errors(predictions({"resnet18": falling(CARTOON)}, "cartoon style", scales)))
    assert estimates(cartoon, shift="cartoon style") == pytest.approx([0, 0.010, 0.082, 0.270, 0.401, 0.481], abs=0.0015)
    pooled = errors(predictions({"resnet18": falling(POOLED)}, "cartoon style", scales))
    assert estimates(accuracies(pooled), shift=accuracy.ALL) == pytest.approx([0.90, 0.90, 0.88, 0.85, 0.80, 0.72], abs=0.0051)
    lost = estimates(drops(pooled), shift=accuracy.ALL)
    assert lost[2:] == pytest.approx([0.02, 0.05, 0.10, 0.19], abs=0.0055)
    assert np.mean(lost) == pytest.approx(0.06, abs=0.0051)  # the paper's average runs over all six scales


def test_the_reference_has_ce_and_rce_one_without_width():
    for function in (accuracy.corruption_error, accuracy.relative_corruption_error):
        own = function(errors(random_predictions(3, trajectories=60)), reference="alexnet").query("model == 'alexnet'")
        assert own["defined"].all()
        assert np.allclose(own[["estimate", "low", "high"]], 1)


@pytest.mark.parametrize(("seeds", "surely"), [(1, False), (5, False), (6, True)])
def test_two_models_differ_surely_only_where_enough_seeds_tell_the_side(seeds, surely):
    """Under snow and under fog the same `seeds` of twelve differ, all to one side: six of a coin's sides are alike once in 32 times."""
    words = {"alexnet": ["..."] * 12, "resnet": ["..x"] * seeds + ["..."] * (12 - seeds)}
    answers = pd.concat([predictions(words), predictions(words, "heavy fog")])
    table = against(answers, "alexnet").query("model == 'resnet' and scale == 1")
    assert (table["estimate"] == seeds / 12).all()
    assert table["low"].gt(0).tolist() == [surely] * 3 and (surely or table["low"].eq(0).all())
    plain = against(answers, "alexnet", units=False).query("model == 'resnet' and scale == 1")
    assert (plain["low"] > 0).all()  # every resample of one seed that differs lies on its side


def test_each_unit_has_the_means_of_its_own_trajectories():
    fog = predictions({model: own[:1] for model, own in HAND.items()}, "heavy fog").assign(**{"class": "coat", "top1": "coat"})
    each = accuracy.by_unit(accuracy.wrong_predictions(pd.concat([predictions(HAND), fog])), SETTINGS)
    assert each.dims == ("unit", "shift", "model", "scale") and each["n"].to_numpy().tolist() == [1, 3, 4]
    assert each.sel(shift="heavy snow", model="resnet").to_numpy().tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert each.sel(shift=accuracy.ALL, model="alexnet").to_numpy().tolist() == [[0, 0, 0.5], [0, 1, 1], [0, 1, 1]]
    assert not each[0, 0].any() and each[1:, 0].isnull().all()  # under fog there is seed 1 alone
    mean = accuracy.over_shifts(each).sel(model="resnet")
    assert mean[0].to_numpy().tolist() == [[0, 0, 0.5]] and mean["n"].to_numpy().tolist() == [4]


def test_categoricals_and_texts_in_any_order_of_rows_give_the_same_array():
    table = pd.concat([random_predictions(10), predictions({"alexnet": ["x"], "resnet": ["."]}, UNSHIFTED, [0.0])])
    table = table[(table["shift"] == UNSHIFTED) | (table["scale"] > 0)]
    kept = pd.DataFrame({"shift": ["heavy fog", "heavy snow"], "class": "bag", "seed": 1})
    coded = table.sample(frac=1, random_state=0).astype(dict.fromkeys(["model", "shift", "class", "top1"], "category"))
    texts, codes = (accuracy.wrong_predictions(t, kept) for t in (table, coded))
    assert texts.equals(codes) and texts[:, :, 0].to_numpy().tolist() == [[True, False]] * 2


def test_a_reference_that_does_not_fail_gives_nan_and_a_flag_never_infinity():
    perfect = predictions({"alexnet": ["..."] * 60, "resnet": [".xx"] * 60})
    found = errors(pd.concat([perfect, random_predictions(12, shifts=("heavy fog",), trajectories=60)]))
    for function in (accuracy.corruption_error, accuracy.relative_corruption_error):
        table = function(found, reference="alexnet").query("model == 'resnet'").set_index("shift")
        assert table.loc["heavy snow", ["estimate", "low", "high"]].isna().all() and not table.loc["heavy snow", "defined"]
        assert table.loc["heavy fog", "defined"] and not table.loc[accuracy.MEAN, "defined"] and table.loc[accuracy.MEAN, "shifts"] == 1
        assert table.loc[accuracy.MEAN, ["n", "estimate"]].tolist() == table.loc["heavy fog", ["n", "estimate"]].tolist()
        assert not np.isinf(table[["estimate", "low", "high"]].to_numpy(float)).any()
    twice = accuracy.corruption_error(errors(pd.concat([perfect, perfect.assign(shift="heavy fog")])), reference="alexnet")
    assert twice["estimate"].isna().all() and not twice["defined"].any()


@pytest.mark.parametrize(
    ("lost", "won", "kept", "defined"),
    [
        (16, 0, 84, True),  # of 100 trajectories, a sixth at the last of three scales: 0.053 on average
        (14, 0, 86, False),  # 0.047: too little
        (8, 0, 41, False),  # 0.054, but of 49 trajectories
        (30, 14, 56, False),  # 0.053, but others are won: less than three standard errors
    ],
)
def test_a_relative_error_needs_trajectories_and_a_reference_that_surely_loses(lost, won, kept, defined):
    words = {"alexnet": ["..x"] * lost + ["xx."] * won + ["..."] * kept, "resnet": [".xx"] * (lost + won + kept)}
    table = accuracy.relative_corruption_error(errors(predictions(words)), reference="alexnet")
    assert table["defined"].eq(defined).all() and table["estimate"].notna().eq(defined).all()


def losses(values: np.ndarray, confidence: float = 0.95) -> xr.DataArray:
    labels = {"shift": ["heavy snow", accuracy.ALL], "n": ("shift", [5, 5]), "model": ["alexnet", "resnet"], "confidence": confidence}
    return xr.DataArray(values, labels, ["resample", "shift", "model"])


def test_a_reference_that_loses_just_enough_defines_the_ratio():
    just = losses(np.full((3, 2, 2), accuracy.LEAST_LOSS))
    assert accuracy.error_ratio(just, reference="alexnet", trajectories=5)["defined"].all()
    assert not accuracy.error_ratio(just * 0.99, reference="alexnet", trajectories=5)["defined"].any()


def test_a_resample_without_a_positive_denominator_counts_as_infinite():
    """The denominator is 0 in 2 % of the resamples: within the tail of a 95 % interval, beyond that of 99 %."""
    values = np.ones((101, 2, 2))
    values[1:3, 0, 0] = 0
    for confidence, finite in ((0.95, True), (0.99, False)):
        table = accuracy.error_ratio(losses(values, confidence), reference="alexnet", trajectories=5)
        assert table["defined"].all()
        assert (table["high"] == 1).all() if finite else table["high"].isna().all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: pd.concat([t, t.tail(1)]), "1 rows appear twice, the first of shift heavy snow, class bag, seed 3, model resnet"),
        (lambda t: t.drop(t.index[4]), "1 rows are missing, the first of .* model alexnet, scale 0.5.* one for each of 3"),
    ],
)
def test_incomplete_and_repeated_predictions_are_refused(damage, message):
    with pytest.raises(ValueError, match=message):
        accuracy.wrong_predictions(damage(predictions(HAND)))


def test_kept_trajectories_without_predictions_are_refused():
    kept = pd.DataFrame({"shift": "heavy snow", "class": "bag", "seed": [1, 9]})
    with pytest.raises(ValueError, match=r"kept trajectories: 1 rows missing .*9"):
        accuracy.wrong_predictions(predictions(HAND), kept)
    with pytest.raises(ValueError, match="no trajectory is left"):
        accuracy.wrong_predictions(predictions(HAND), kept[:0])


def test_the_hardest_shift_is_told_by_resamples_that_know_every_shift_and_level_ones_share_it():
    words = {"alexnet": [".xx"] * 6}
    parts = [predictions(words), predictions(words, "heavy fog"), predictions({"alexnet": ["..."] * 6}, "heavy dust")]
    lost = accuracy.drop(errors(pd.concat(parts))).isel(scale=-1, drop=True).mean("model")
    lost[9:, 0] = np.nan  # heavy dust, as where its seed was not drawn
    table = accuracy.hardest(lost)
    assert table.loc[2, "shift"] == "heavy dust"
    assert table.set_index("shift")["probability"].to_dict() == {"heavy fog": 0.5, "heavy snow": 0.5, "heavy dust": 0.0}
    lost[1:, 0] = np.nan
    assert accuracy.hardest(lost)["probability"].isna().all()


def test_over_the_same_classes_a_shift_is_not_hard_because_of_the_classes_that_are_left_under_it():
    """Bags always fail and coats never; under fog, bags alone are left. By hand: bags fail under both, and with equal weights half do."""
    parts = [predictions({"vit": [".x"]}, shift, SCALES[:2]) for shift in ("heavy snow", "heavy fog", "heavy rain")]
    coats = [part.assign(**{"class": "coat", "top1": "coat"}) for part in (parts[0], pd.concat([parts[2], parts[2].assign(seed=2)]))]
    wrong = accuracy.wrong_predictions(pd.concat([*parts, *coats]))
    last = {"resample": 0, "scale": 1, "model": 0}
    assert accuracy.by_shift(wrong, SETTINGS)[last].to_series().to_dict() == pytest.approx(
        {"heavy fog": 1, "heavy rain": 1 / 3, "heavy snow": 1 / 2, accuracy.ALL: 1 / 2}
    )
    alike = accuracy.same_classes(wrong, SETTINGS)
    assert alike[last].to_series().tolist() == [1, 1, 1, 1] and alike["n"].to_numpy().tolist() == [1, 1, 1, 3]
    both = accuracy.same_classes(wrong[wrong["shift"] != "heavy fog"], SETTINGS)
    assert both[last].to_series().tolist() == [0.5, 0.5, 0.5] and both["n"].to_numpy().tolist() == [3, 2, 5]
    none = accuracy.same_classes(wrong[(wrong["shift"] == "heavy fog") | (wrong["class"] == "coat")], SETTINGS)
    assert none.isnull().all() and not none["n"].any()


def test_held_out_pictures_are_drawn_one_by_one_within_their_class_whatever_their_numbers(tmp_path):
    """A number that is right in one class and wrong in the other: as pairs they would never vary. By hand: strata of p = 1 / 2."""
    keys = [(UNSHIFTED, name, seed, 0.0) for name in ("bag", "coat") for seed in range(60)]
    table = pd.DataFrame(keys, columns=tables.KEY)
    table["top1"] = np.where((table["seed"] % 2 == 0) == (table["class"] == "bag"), table["class"], "hat")
    more = {"model": "a", "top5": [["bag"]] * 120, "probability": 0.5, "margin": 0.0, "preprocessing": "model"}
    tables.write(table.assign(**more), tmp_path / "heldout" / "a.parquet", tables.predictions)
    widths = {}
    for target in (SAME, OBJECTS, OTHER):
        row = accuracies(accuracy.held_out(tmp_path, settings=resampled(4000, target, seed=3))).iloc[0]
        widths[target] = row["high"] - row["low"]
    deviation = np.sqrt(60 / 59 * 0.25 / 120)
    assert widths[SAME] == widths[OBJECTS] == pytest.approx(2 * scipy.stats.t.ppf(0.975, 118) * deviation, rel=0.06)
    assert widths[OTHER] == pytest.approx(0, abs=1e-9)  # both classes have one half: other classes would, too


def test_published_accuracies_vary_as_many_independent_images_do(tmp_path):
    pd.DataFrame({"model": ["b", "a"], "accuracy": [0.8, 0.5], "n": 10000}).to_csv(tmp_path / "heldout.csv", index=False)
    found = accuracy.held_out(tmp_path, settings=resampled(2000, seed=3))
    assert found.sel(resample=0, shift=accuracy.ALL, scale=0).to_series().to_dict() == pytest.approx({"a": 0.5, "b": 0.2})
    assert found[1:, -1, :, 0].to_numpy().std(0) == pytest.approx([0.005, 0.004], rel=0.1)  # sqrt(p (1 - p) / n)
    table = accuracies(found).query("shift == 'catalog'").set_index("model")
    assert table.loc["a", ["low", "high"]].tolist() == pytest.approx([0.4902, 0.5098], abs=1e-3)


def test_three_shifts_stand_for_all_and_small_ones_only_where_there_are_no_others():
    table = pd.DataFrame({"shift": list("abcde"), "n": [8, 60, 70, 80, 90]})
    assert accuracy.exemplars(table) == ["b", "d", "e"]
    assert accuracy.exemplars(table.assign(n=5)) == ["a", "c", "e"]
    assert accuracy.exemplars(table.head(1)) == ["a"]
