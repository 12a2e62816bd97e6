"""What goes into the benchmark (notebook 00): the answer of the page."""

import pandas as pd

from cnslib.stats.quality import MET, MISSED


def answer(judged: pd.DataFrame) -> str:
    """The answer of the page: how many bounds are met, and which qualities miss theirs (columns quality and verdict)."""
    met, missed = (judged.loc[judged["verdict"] == word, "quality"] for word in (MET, MISSED))
    return f"**{len(met)} of {len(judged)} quality bounds are met; missed: {', '.join(missed) or 'none'}.**"
