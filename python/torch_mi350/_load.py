"""Loads _C, or says in one sentence why this build cannot serve the torch that runs."""

import importlib
import importlib.machinery
import mmap
import pathlib

import torch

_MARKER = b"mi350-built-for-torch="


def built_for(path):
    """The torch minor that the extension file `path` was built for, read without loading it."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        at = text.find(_MARKER)
        if at < 0:
            return None
        begin = at + len(_MARKER)
        return text[begin : text.find(b";", begin)].decode()


def mismatch(built, running):
    """None if a build for torch `built` may run on torch `running`, else the sentence."""
    if built is not None and running.split(".")[:2] == built.split("."):
        return None
    return (
        f"torch_mi350 was built for torch {built or '(unknown)'} and cannot be used with torch {running}: "
        "install a build for that torch (pip install --no-build-isolation .)"
    )


def extension():
    """The module _C. A build for another torch is refused before the loader sees it."""
    folder = pathlib.Path(__file__).absolute().parent
    candidates = [folder / f"_C{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    path = next((p for p in candidates if p.exists()), None)
    if path is None:
        raise ImportError(f"torch_mi350: no compiled extension (_C*.so) for this Python in {folder}")
    sentence = mismatch(built_for(path), torch.__version__)
    if sentence is not None:
        raise ImportError(sentence)
    return importlib.import_module("torch_mi350._C")
