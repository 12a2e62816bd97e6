"""What a data set says about itself, for its metadata and its datasheet."""

from cnslib.core.settings.sections import Dataset

ABOUT = Dataset(
    name="CNS-Bench mini",
    description="Garments under continuous nuisance shifts.",
    version="1.0.0",
    url="https://example.org/cns",
    license=["https://spdx.org/licenses/MIT"],
    creator="The authors",
    date_published="2026-01-02",
    cite_as="@inproceedings{cns, title={CNS-Bench}}",
    keywords=["robustness"],
)
