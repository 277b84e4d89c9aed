"""Files damaged in the ways that files are: cut, overwritten, mixed up, and with numbers that nobody meant."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections.abc import Callable

import numpy as np

_WORDS = (
    b"nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1e999", b"-1", b"0", b"", b" ", b"\n", b"\r\n", b"\r", b",", b";",
    b"\t", b":", b'"', b"'", b"[", b"]", b"{", b"}", b"null", b"true", b"1_000", b"0x10", b"2147483647", b"2147483648",
    b"-2147483649", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"1" + 400 * b"0", b"1e308",
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"#", b"qid:1", b"a" * 3000, b"[" * 3000,
    b'{"a":' * 3000, b"{}", b"[]", b"1:", b":1", b"0:1", b"1:nan", "\u0661".encode(), "é".encode(),
)  # fmt: skip
_BYTES = b"\0\1\7\n 09\x7f\x80\xfe\xff"


def mutated(content: bytes, name: str, rng: np.random.Generator) -> bytes:
    """The content with one to five damages, mostly one; of a packed file perhaps its inside, packed anew."""
    if name.endswith(".npz") and rng.random() < 0.6:
        return _inside_zip(content, rng)
    if name.endswith(".gz") and rng.random() < 0.5:
        return gzip.compress(_damaged(gzip.decompress(content), rng), mtime=0)
    return _damaged(content, rng)


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(min(int(rng.geometric(0.6)), 5)):
        content = _WAYS[int(rng.integers(len(_WAYS)))](content, rng)
    return content


def _inside_zip(content: bytes, rng: np.random.Generator) -> bytes:
    """An archive of which one member is damaged, is missing, stands there twice or under the name of another."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    k = int(rng.integers(len(members)))
    way = rng.random()
    if way < 0.7:
        members[k] = (members[k][0], _damaged(members[k][1], rng))
    elif way < 0.8:
        del members[k]
    elif way < 0.9:
        members[k] = (members[k][0], members[int(rng.integers(len(members)))][1])
    else:
        members.append((members[int(rng.integers(len(members)))][0] + "x", members[k][1]))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members:
            archive.writestr(zipfile.ZipInfo(name), member)
    return out.getvalue()


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(content) + 1))


def _span(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    first = _place(content, rng)
    return first, min(len(content), first + int(rng.geometric(0.05)))


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return content
    k = int(rng.integers(len(content)))
    return content[:k] + bytes([content[k] ^ (1 << int(rng.integers(8)))]) + content[k + 1 :]


def _overwrite(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return content
    k = int(rng.integers(len(content)))
    return content[:k] + bytes([_BYTES[int(rng.integers(len(_BYTES)))]]) + content[k + 1 :]


def _delete(content: bytes, rng: np.random.Generator) -> bytes:
    first, last = _span(content, rng)
    return content[:first] + content[last:]


def _repeat(content: bytes, rng: np.random.Generator) -> bytes:
    first, last = _span(content, rng)
    return content[:last] + content[first:last] * int(rng.integers(1, 4)) + content[last:]


def _move(content: bytes, rng: np.random.Generator) -> bytes:
    first, last = _span(content, rng)
    rest = content[:first] + content[last:]
    k = _place(rest, rng)
    return rest[:k] + content[first:last] + rest[k:]


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + _WORDS[int(rng.integers(len(_WORDS)))] + content[k:]


def _noise(content: bytes, rng: np.random.Generator) -> bytes:
    first, last = _span(content, rng)
    return content[:first] + rng.bytes(last - first) + content[last:]


def _another_number(content: bytes, rng: np.random.Generator) -> bytes:
    """A number or a word of a text becomes another one."""
    found = list(re.finditer(rb"-?\d[\d.]*|\b[a-z]+\b", content[:100_000]))
    if not found:
        return content
    match = found[int(rng.integers(len(found)))]
    return content[: match.start()] + _WORDS[int(rng.integers(len(_WORDS)))] + content[match.end() :]


def _swap_lines(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    i, j = rng.integers(len(lines), size=2)
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


_WAYS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _cut, _flip, _flip, _overwrite, _overwrite, _delete, _repeat, _move, _insert, _insert, _noise, _another_number,
    _another_number, _another_number, _swap_lines,
)  # fmt: skip
