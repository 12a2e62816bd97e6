"""Findings about CNS-Bench's own tables: a line agrees where the tables do."""

from cnslib.core import paths
from cnslib.core.settings.analyses import Published
from cnslib.core.settings.method import Bootstrap
from cnslib.studies.published import findings

SETTINGS = Published(bootstrap=Bootstrap(100, 0.95, 1, "same classes"), starts=50, images=20, seed=1)


def test_agreeing_tables_make_an_agreeing_line(tmp_path, monkeypatch):
    for path in paths.PUBLISHED.glob("*.csv"):
        (tmp_path / path.name).write_text(
            path.read_text().replace("DINOv1-IN1k,dinov1_ft_vit_base_patch16,0.636", "DINOv1-IN1k,dinov1_ft_vit_base_patch16,0.676")
        )
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    assert not findings.rce_dinov1(SETTINGS).differs
