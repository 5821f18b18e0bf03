"""README's support table is what the installed package answers."""
import pathlib

from torch_mi350 import support

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_readme_table_is_the_generated_one():
    text = (ROOT / "README.md").read_text()
    shown = text.partition(support.BEGIN)[2].partition(support.END)[0].strip()
    assert shown == "\n".join(support.lines())


def test_table_names_every_op_and_its_dtypes():
    rows = support.lines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == list(support.OPS)
    assert all("bf16" in row and "fp16" in row for row in rows)
