"""The discrepancy ledger: paper value, released-code value, our value, reason, effect and verdict, a line per discrepancy.

published/ledger.csv holds the prose of every line. The numbers come from the published tables: from the function of the line's name in
`findings` or `releases`, or, where two recorded facts are compared, from the facts themselves.
"""

import pandas as pd
import pandera.pandas as pa

from cnslib.core import paths, tables
from cnslib.core.names import demand
from cnslib.core.settings.analyses import Published
from cnslib.data import published
from cnslib.studies.published import findings, releases
from cnslib.studies.published.findings import UNSAID, Finding

PROSE = tables.schema(
    ["id"],
    {
        name: pa.Column(str)
        for name in ("id", "document", "item", "subject", "paper_table", "paper_fact", "code_fact", "reason", "effect", "source")
    },
)
VERDICTS = ("agrees", UNSAID, "differs", "differs, the claim stands", "differs, the claim falls")
COLUMNS = ["id", "document", "item", "subject", "paper", "code", "ours", "reason", "effect", "verdict", "source"]


def prose() -> pd.DataFrame:
    """The lines' prose in printed order. ValueError names rows that break the schema."""
    path = paths.PUBLISHED / "ledger.csv"
    return tables.valid(pd.read_csv(path, dtype=str, keep_default_na=False), PROSE, path.name)


def find(line, settings: Published) -> Finding:
    """The finding of one line; ValueError names a line that has neither a function nor two recorded facts."""
    own = getattr(releases, line.id, getattr(findings, line.id, None))
    if own is not None:
        return own(settings)
    demand(
        bool(line.paper_fact and line.code_fact), f"ledger.csv: {line.id}", line.id, "a function of findings, or paper_fact and code_fact"
    )
    said, made = published.facts(line.paper_table)[line.paper_fact], published.facts("released_code")[line.code_fact]
    return Finding(said, "", said != made)


def verdict(found: Finding) -> str:
    """Whether the values agree, and if not, what becomes of the claim that rests on them, where it can be tested.

    Where the paper states nothing, nothing agrees and nothing differs.
    """
    agrees, unsaid, differs, stands, falls = VERDICTS
    if found.paper == UNSAID:
        return unsaid
    if not found.differs:
        return agrees
    return differs if found.holds is None else stands if found.holds else falls


def build(settings: Published) -> pd.DataFrame:
    """The ledger: a row per line of the prose with COLUMNS; reason and effect carry the computed numbers.

    Where our value is what one expects there is nothing to explain, and reason and effect are empty.
    """
    code, rows = published.facts("released_code"), []
    for line in prose().itertuples():
        found = find(line, settings)
        words = [text.format(**found.numbers) if found.differs else "" for text in (line.reason, line.effect)]
        said = {"paper": found.paper, "code": code[line.code_fact] if line.code_fact else "", "ours": found.ours}
        own = {name: getattr(line, name) for name in ("id", "document", "item", "subject", "source")}
        rows.append({**own, **said, "reason": words[0], "effect": words[1], "verdict": verdict(found)})
    return pd.DataFrame(rows)[COLUMNS]


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """Number of lines per document and verdict, a column per verdict."""
    counts = table.groupby(["document", "verdict"], sort=False).size().unstack(fill_value=0)
    return counts.reindex(columns=[name for name in VERDICTS if name in counts])
