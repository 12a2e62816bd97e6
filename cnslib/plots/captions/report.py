"""One classifier among the others (notebook 16): captions, and sentences on what its figures show."""

import pandas as pd

from cnslib.plots.captions.words import certain, enough, interval, listed
from cnslib.plots.figures import extent


def asked(pictures: int, kept: int, others: list[str]) -> str:
    """What the classifier is asked about, and beside whom."""
    answered = f"It answers all {pictures:,} pictures; those of the {kept:,} kept trajectories count"
    return f"{answered}. {len(others)} others: {', '.join(others)}"


def overview_seen(summary: pd.DataFrame, drops: pd.DataFrame, name: str) -> str:
    """The places of the classifier in its summary, and the shift that costs it most, of those with enough trajectories."""
    rows = summary.dropna(subset=["place"])
    places = listed(f"{row['place']:.0f} of {row['of']:.0f} by {row['quantity']}" for _, row in rows.iterrows())
    own = enough(drops[(drops["model"] == name) & (drops["scale"] == drops["scale"].max())])
    worst = own.loc[own["estimate"].idxmax()]
    most = f"By the last scale {worst['shift']} costs {name} most accuracy, {interval(worst)}"
    return f"Its places (equal values share the better one): {places}. {most}."


def shifts(lost: pd.DataFrame, *, note: str) -> str:
    """The caption of the paired difference of drops per shift, with minus without the blur."""
    hurt, spared = certain(lost)
    finding = f"The blur surely protects against {spared} of {len(lost)} shifts and surely hurts under {hurt}"
    counted = f"{extent(lost['n'])} trajectories per shift; lines: {note}, paired, not corrected for their number"
    return f"{finding}. {counted}; dotted: no difference"


def shifts_seen(lost: pd.DataFrame, *, confidence: float) -> str:
    """Which shifts those are; `confidence` is that of their intervals."""
    spared, hurt = lost[lost["high"] < 0]["shift"], lost[lost["low"] > 0]["shift"]
    best = lost.loc[lost["estimate"].idxmin()]
    text = f"It surely protects against: {listed(spared)}; it surely makes worse: {listed(hurt)}"
    most = f"The difference is most in its favour under {best['shift']}, {interval(best, '+.2f')}"
    luck = (1 - confidence) * len(lost)
    return f"{text}. {most}. Without any effect, about {luck:.1f} of {len(lost)} such intervals of {confidence:.0%} would leave out zero."


def answer(gain: pd.DataFrame, summary: pd.DataFrame, *, name: str, plain: str, confidence: float) -> str:
    """The answer of the page; `gain` holds the paired differences by scale."""
    end = gain.iloc[-1]
    own = summary.set_index("quantity").loc[f"accuracy at scale {end.name:g}"]
    place = f"At scale {end.name:g} {name} names {interval(own, '.0%')} of the images right, place {own['place']:.0f} of {own['of']:.0f}"
    alpha = 1 - confidence
    return f"**{place}; {rivalry(end, plain, alpha=alpha)}.** {elsewhere(gain.iloc[:-1], plain, alpha=alpha)}"


def rivalry(end: pd.Series, plain: str, *, alpha: float) -> str:
    """Whether it is more accurate than its plain rival, by Holm's p below `alpha` as everywhere on the page."""
    sure = "more" if end["estimate"] > 0 else "less"
    word = f"it is {sure} accurate than {plain}" if end["p_holm"] < alpha else f"whether it is more accurate than {plain} is undecided"
    return f"{word} ({end['estimate']:+.3f}, {end['low']:+.3f} to {end['high']:+.3f}, Holm's p {end['p_holm']:.2g})"


def elsewhere(gain: pd.DataFrame, plain: str, *, alpha: float) -> str:
    """At which of some scales it is more or less accurate than its plain rival, by Holm's p below `alpha`."""
    parts = []
    for word, sign in (("more", 1), ("less", -1)):
        sure = gain.loc[(gain["p_holm"] < alpha) & (sign * gain["estimate"] > 0), "estimate"]
        if len(sure):
            scales = listed(f"{scale:g} ({value:+.3f})" for scale, value in sure.items())
            parts.append(f"is surely {word} accurate than {plain} at scale {scales}")
    return f"It {'; it '.join(parts)}." if parts else f"At no other scale is it surely more or less accurate than {plain}."
