"""onnxruntime's checks of the system that it runs on: there is nothing to check."""

from __future__ import annotations

from sardonyx.capi.build_and_package_info import __version__, package_name

has_ortmodule = False


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The package's name, the release of onnxruntime whose names it has, and the version of CUDA: none."""
    return package_name, __version__, ""


def check_distro_info() -> None:
    """Accepted for compatibility."""


def validate_build_package_info() -> tuple[bool, str, str, str]:
    """(whether there is an ORTModule, the package's name, its version, the version of CUDA)."""
    return has_ortmodule, package_name, __version__, ""
