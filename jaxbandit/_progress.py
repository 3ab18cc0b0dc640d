"""The bar that long work shows, on the host."""

import contextlib
import warnings
from types import SimpleNamespace
from typing import Any


def bar(progress: bool | None, what: str, extra: str, **options: Any) -> Any:
    """A bar of tqdm's in runs: always (``True``), never (``False``), or where the output is a terminal or notebook.

    Where there is nothing to show it with, and ``progress`` does not ask for it, one that is disabled.
    """
    try:
        with warnings.catch_warnings():  # a notebook without widgets has a bar of text; it need not be told
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError as error:
        if progress:
            raise ImportError(f"{what} needs {error.name}: pip install 'jaxbandit[{extra}]'") from error
        return contextlib.nullcontext(SimpleNamespace(disable=True))
    disable = None if progress is None else not progress
    return tqdm(desc=what, unit=" runs", unit_scale=True, disable=disable, **options)
