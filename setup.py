"""The packages below this folder, the native module, and the readme. Everything else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_py import build_py

NATIVE = "codec/native/source"


class Modules(build_py):
    def find_package_modules(self, package, package_dir):
        """Leave this file out, which lies in the root package's folder."""
        return [
            module for module in super().find_package_modules(package, package_dir) if module[1] != "setup"
        ]


def readme() -> str:
    """Return README.md without links to files of the repository, which an index of packages hasn't: with
    the words of each link, and of each picture."""
    return re.sub(r"!?\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", Path("README.md").read_text())


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": Modules},
    packages=["tidemill", *(f"tidemill.{name}" for name in find_packages(exclude=["tests*"]))],
    package_dir={"tidemill": "."},
    ext_modules=[
        Extension(
            "tidemill.codec.native._native",
            sources=sorted(map(str, Path(NATIVE).glob("*.c"))),
            depends=sorted(map(str, Path(NATIVE).glob("*.h"))),
            optional=True,  # without a C compiler the decoders in Python do the work
        )
    ],
)
