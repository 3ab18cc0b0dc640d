"""The bar that long work shows, on the host."""

from typing import Any


def bar(progress: bool | None, what: str, extra: str, **options: Any) -> Any:
    """A bar of tqdm's in runs: always (``True``), never (``False``), or where the output is a terminal or notebook.

    ``None`` in its place where there is nothing to show it with, unless ``progress`` asks for it.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        if progress:
            raise ImportError(f"{what} needs {error.name}: pip install 'jaxbandit[{extra}]'") from error
        return None
    disable = None if progress is None else not progress
    return tqdm(desc=what, unit=" runs", unit_scale=True, disable=disable, **options)
