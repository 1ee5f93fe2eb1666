"""The records that every client of tests/clients writes, and what a reader must get back."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 60


def key(i: int) -> str:
    return f"k{i}"


def value(codec: str, i: int) -> str:
    return f"{codec}-{i}-{'x' * i}"


def header(i: int) -> str:
    return f"h{i}"


def expected(codec: str, headers: bool = True) -> list[dict]:
    return [{"offset": i, "key": key(i), "value": value(codec, i), "header": header(i) if headers else ""}
            for i in range(COUNT)]
