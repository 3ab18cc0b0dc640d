"""The result of a sweep beside its blocks: a zarr group that xarray opens by itself, and the store as a dataset."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from jaxbandit import _checks
from jaxbandit.sweeps import labels, store

if TYPE_CHECKING:
    import xarray

GROUP = "result"


def open_sweep(path: str | Path) -> "xarray.Dataset":
    """What the last call of ``sweep`` with this store asked for, without its ``build``, finished or not.

    The same numbers and labels as that call gives. Until all of its blocks are done, ``attrs["done"]`` is the share of
    runs that are, runs to come are NaN in ``final_regret`` and ``regret_curve``, and a cell's statistics are NaN
    until all of its runs are done. Nothing is written; others may be at work on the store.

    Args:
        path: the folder that was ``store``.

    Raises:
        ImportError: the extra ``sweep`` is not installed.
        ValueError: the folder is not a store, or one of another version.
    """
    store.require("open_sweep")
    return labels.dataset(store.existing(_checks.path("open_sweep: path", path)))


def write(path: Path, data: "xarray.Dataset") -> None:
    """Leave a result in the group ``result``, whole: it is written elsewhere and renamed.

    What fails here loses nothing: the blocks are there, and the next call writes it.
    """
    try:
        with store.locked(path):
            for left in path.glob(f".{GROUP}-*.partial"):
                shutil.rmtree(left)
            folder = Path(tempfile.mkdtemp(prefix=f".{GROUP}-", suffix=".partial", dir=path))
            with warnings.catch_warnings():
                # Zarr warns that consolidated metadata are its own invention, xarray where they are missing.
                warnings.simplefilter("ignore", UserWarning)
                data.to_zarr(folder / "new", consolidated=True, zarr_format=3)
            if (path / GROUP).exists():
                (path / GROUP).rename(folder / "old")
            (folder / "new").rename(path / GROUP)
            shutil.rmtree(folder)
    except OSError as error:
        warnings.warn(f"sweep: the result could not be written to {path / GROUP} ({error})", stacklevel=3)
