"""What XIMAGENET-12 concludes (section 6), tested on our answers: a line per test with its claim, interval, published value and verdict.

The paper's random background is the saturating sum that its code makes, so its numbers stand beside our summed background.
"""

import numpy as np
import pandas as pd
from jaxtyping import Float

from cnslib.data import published
from cnslib.stats import bootstrap, ranking, verdicts
from cnslib.studies import published as implied
from cnslib.studies.scenarios import score
from cnslib.studies.scenarios.experiment2 import PRINTED
from cnslib.studies.scenarios.scenarios import SUMMED
from cnslib.studies.scenarios.score import Accuracies

RANDOM, SEGMENTED = "random background", "segmented"
TESTED = {SUMMED if name == RANDOM else name: theirs for name, theirs in PRINTED.items()}  # what the paper tested in EX1
MARGIN = 0.05  # a loss of accuracy below this counts as none
LOSS, NO_LOSS, NO_ORDER = 0.0, -MARGIN, 0.0  # the nulls: no difference, a loss that counts, a tau of orders that tell nothing
CROSS, INNER = implied.REGIMES


def line(quantity: str, values: Float[np.ndarray, "resamples+1"], found: Accuracies, theirs: float, null: float, source: str) -> dict:
    """One claim: our statistic with its interval, the published one, and the null from which its direction is seen."""
    return claimed(quantity, bootstrap.record(values, found.n, found.confidence), theirs, null, source)


def claimed(quantity: str, ours: dict, theirs: float, null: float, source: str) -> dict:
    """The same of a record."""
    return {"quantity": quantity, **ours, "published": theirs, "null": null, "source": source}


def worst(found: Accuracies, set_name: str) -> dict:
    """Conclusion 1: how much more accuracy the random background costs than the next worst scenario of Table 1, mean over models."""
    others = [name for name in TESTED if name != SUMMED]
    drops = found.drops([SUMMED, *others]).mean(1)
    second = 1 + int(drops[0, 1:].argmax())
    printed = pd.DataFrame(implied.rows("ximagenet12_table1", "accuracy_percent"), index=published.SCENARIOS).T
    mean = printed.xs(CROSS, level=1).mean()
    theirs = mean.drop("random_background").min() - mean["random_background"]
    named = f"{set_name}, EX1: loss by the summed background minus that by the next worst ({others[second - 1]})"
    return line(named, drops[:, 0] - drops[:, second], found, float(theirs), LOSS, "conclusion 1; Table 1")


def without_background(found: Accuracies) -> list[dict]:
    """Conclusion 2: accuracy trained and tested on segmented objects, minus that on colours and blurs, and minus that on originals."""
    rest = [name for name in PRINTED if name not in (RANDOM, SEGMENTED)]
    own = found.of(SEGMENTED)[..., 0]
    printed = pd.DataFrame(implied.rows("ximagenet12_table1", "accuracy_percent"), index=published.SCENARIOS).T.xs(INNER, level=1)
    theirs = (printed["segmented_image"] - printed[[PRINTED[name] for name in rest]].mean(axis=1)).mean()
    beside = (own - found.of(*rest).mean(-1)).mean(1)
    originals = (own - found.originals).mean(1)
    return [
        line("garments, EX2: segmented minus colours and blurs", beside, found, float(theirs), NO_LOSS, "conclusion 2; Table 1"),
        line("garments, EX2: segmented minus originals", originals, found, 0.0, NO_LOSS, "conclusion 2; section 5.2 says no drop"),
    ]


def stable(found: Accuracies, set_name: str) -> list[dict]:
    """Conclusion 3: agreement of accuracy on originals with stability (minus the cross variance); above 0 where accuracy tells stability.

    Seen from 0: from 1, the end of what is possible, any tau would lie on the published side, and nothing could contradict the claim.
    Not measured where the interval spans all that is possible, as with few models: then nothing could decide it.
    Published twice: with the accuracy on the same data (each cross row's implied mean), and with ImageNet's, on which the paper rests.
    """
    unstable = score.variance(found.of(*TESTED), mean=found.originals, ddof=0)
    tau = ranking.order_record(found.originals, -unstable, found.n, found.confidence)
    null = NO_ORDER if tau["low"] > -1 or tau["high"] < 1 else np.nan
    means = implied.implied_means().xs(CROSS, level="trained_on")
    table = published.read("ximagenet12_table2_scores").set_index("model")
    steady = -table["variance_cross"]
    kinds = {"the same data": means["mean"].loc[table.index], "ImageNet": table["imagenet_percent"]}
    return [
        claimed(
            f"{set_name}, EX1: Kendall's tau of accuracy and stability, published accuracy on {kind}",
            tau,
            float(ranking.kendall(own.to_numpy(), steady.to_numpy())),
            null,
            "conclusion 3; Table 2",
        )
        for kind, own in kinds.items()
    ]


def learned(ex1: Accuracies, ex2: Accuracies) -> dict:
    """Section 5.2: whoever trains on random backgrounds learns to ignore them; EX2 minus EX1, mean over models.

    Not measured: the paper's gain is one on sums, and nobody was trained on ours.
    """
    gain = (ex2.of(RANDOM) - ex1.of(RANDOM))[..., 0].mean(1)
    printed = implied.rows("ximagenet12_table1", "accuracy_percent")
    place = published.SCENARIOS.index("random_background")
    both = [model for model, regime in printed if regime == INNER and (model, CROSS) in printed]
    theirs = np.mean([printed[model, INNER][place] - printed[model, CROSS][place] for model in both])
    return line("garments: random background, EX2 minus EX1", gain, ex1, float(theirs), np.nan, "section 5.2; Table 1")


def learned_beyond(ex1: Accuracies, ex2: Accuracies) -> dict:
    """How much less a random background costs after training on such, each cost from its experiment's own originals, as a record.

    EX2's originals were trained for as many steps, so what these alone give or take does not count.
    """
    less = (ex1.drops([RANDOM]) - ex2.drops([RANDOM]))[..., 0].mean(1)
    return bootstrap.record(less, ex1.n, ex1.confidence)


def against_paper(garments: Accuracies, trained: Accuracies, photographs: Accuracies) -> pd.DataFrame:
    """Every test as one line, with the claim that it tests. Losses and gains are of accuracies in [0, 1].

    The answers to garments and photographs are EX1's, those under the summed background among them.
    """
    lines = [worst(photographs, "photographs"), worst(garments, "garments"), *without_background(trained)]
    lines += [*stable(photographs, "photographs"), *stable(garments, "garments"), learned(garments, trained)]
    table = pd.DataFrame(lines)
    table.insert(0, "claim", table["source"].str.partition(";")[0])
    return verdicts.beside(table.drop(columns="null"), table["published"], null=table["null"])
