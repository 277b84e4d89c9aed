"""Draw the pictures of the documentation's pages by running their code: page.md's "x.png" becomes page-x.png here.

python docs/images/draw_pages.py
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
import textwrap

import matplotlib

matplotlib.use("agg")
HERE = pathlib.Path(__file__).resolve().parent


def main():
    for page in sorted(HERE.parent.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if not re.search(rf"\]\(images/{page.stem}-[\w-]+\.png\)", text) or "savefig" not in text:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            space = {"__name__": "documentation"}
            matplotlib.rcParams["savefig.dpi"] = 130
            for _, code in re.findall(r"^( *)```python\n(.*?)^\1```", text, re.S | re.M):
                exec(compile(textwrap.dedent(code), str(page), "exec"), space)
            for picture in pathlib.Path(folder).glob("*.png"):
                shutil.copy(picture, HERE / f"{page.stem}-{picture.name}")
            os.chdir(HERE)


if __name__ == "__main__":
    main()
