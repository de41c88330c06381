"""Types of the messages in `codec/proto/`: `python -m tidemill.testing.proto_stubs` writes them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "codec" / "proto"
_UNUSED: Final = re.compile(
    r"^ *(?:__slots__|DESCRIPTOR|\w+_FIELD_NUMBER)\b.*\n|^\w+: \w+\n|^from \S+ import (descriptor|enum_).*\n",
    re.M,
)
"""Lines that no code needs: field numbers, descriptors, and values of enums outside of their class."""
_IMPORT: Final = re.compile(r"^import (\w+)_pb2 as _\1_pb2$", re.M)
_ENUM: Final = re.compile(r"class (\w+)\(int, metaclass=.*\):")


def stubs() -> dict[str, str]:
    """Return a stub per protobuf package, by its file's name. Needs grpcio-tools."""
    texts: dict[str, str] = {}
    with TemporaryDirectory() as name:
        files = sorted(file.name for file in FOLDER.glob("*.proto"))
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--pyi_out={name}", *files]
        subprocess.run(command, cwd=FOLDER, check=True)
        made = {file: (Path(name) / file.replace(".proto", "_pb2.pyi")).read_text() for file in files}
    enums = "|".join(one for text in made.values() for one in _ENUM.findall(text))
    for file, text in made.items():
        package = re.search(r"^package (\w+);", (FOLDER / file).read_text(), re.M)
        assert package is not None
        text = _IMPORT.sub(r"from . import \1 as _\1_pb2", _UNUSED.sub("", text))
        text = _ENUM.sub(r"class \1:", text).replace("_Mapping]", "_Mapping[str, object]]")
        text = re.sub(rf"(?<=[\[ ])(?:\w+\.)*(?:{enums})(?=\]|,|$)", "int", text, flags=re.M)
        stub = f"{package[1]}.pyi"
        texts[stub] = texts.get(stub, "") + re.sub(r"\n{3,}", "\n\n", text)
    return texts


if __name__ == "__main__":
    for stub, text in stubs().items():
        (FOLDER / stub).write_text(text)
