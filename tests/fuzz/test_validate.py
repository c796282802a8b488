"""Mutated manifests go through validation without an unhandled exception or a hang.

The normal run does a seeded part of it; ``make fuzz`` the whole. A hang is ended by pytest's timeout, and an
exception names the object.
"""

from __future__ import annotations

import os
import random

import orjson
import pytest
import yaml

from kuberay_op.api.crds import VERSIONS
from kuberay_op.api.manifests import Mistake, decode, read_manifests
from kuberay_op.api.validation import admission_problems
from kuberay_op.api.validation.whole import examine
from kuberay_op.api.view import Json
from kuberay_op.api.yamltext import YamlTextError, line_breaks
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir
from kuberay_op.testing.mutate import mutants, mutated_text, seeds

SEED = 20260806
COUNT = int(os.environ.get("FUZZ_COUNT", "100000"))


def samples() -> list[Json]:
    """The reference's samples, when its module can be had."""
    try:
        folder = module_dir("github.com/ray-project/kuberay/ray-operator", "v1.6.2") / "config" / "samples"
    except ModuleUnavailableError:
        return []
    found = (
        item for path in sorted(folder.rglob("*.y*ml")) for item in read_manifests(path.read_text("utf-8"))
    )
    objects = [item.value for item in found if not isinstance(item, Mistake)]
    return [obj for obj in objects if obj.get("kind") in VERSIONS]


def on(_: str) -> bool:
    return True


def fuzz_objects(given: list[Json], count: int, seed: int) -> None:
    accepted = 0
    for number, obj in enumerate(mutants(given, count=count, seed=seed)):
        try:
            found = examine(obj, on if number % 2 else None)
            for problem in found:
                assert str(problem)
                assert problem.path_text or not problem.path
                assert len(problem.message) < 20_000
            if obj.get("kind") in VERSIONS:
                admission_problems(obj)
        except Exception as error:
            error.add_note(
                f"object {number} of seed {seed}: {orjson.dumps(obj, default=repr).decode()[:5000]}"
            )
            raise
        accepted += not any(problem.severity == "error" for problem in found)
    assert count / 50 < accepted < count * 49 / 50, "the mutants are all alike"


def fuzz_texts(given: list[Json], count: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (seeded on purpose)
    texts = [yaml.safe_dump(obj).encode() for obj in given] + [orjson.dumps(obj) for obj in given]
    read = 0
    for number in range(count):
        data = mutated_text(rng.choice(texts), rng)
        try:
            for item in read_manifests(decode(data)):
                if isinstance(item, Mistake):
                    assert item.message
                    assert item.place.line >= 1
                elif isinstance(item.value, dict):
                    read += 1
                    for problem in examine(item.value):
                        line, column = item.place(problem.path)
                        assert 1 <= line <= line_breaks(decode(data)) + 1
                        assert column >= 1
        except YamlTextError:
            continue  # not text at all
        except Exception as error:
            error.add_note(f"text {number} of seed {seed}: {data[:5000]!r}")
            raise
    assert count / 10 < read, "too few texts can be read"


def test_mutated_objects() -> None:
    fuzz_objects(seeds(), 8_000, SEED)


def test_mutated_texts() -> None:
    fuzz_texts(seeds(), 6_000, SEED)


@pytest.mark.slow
def test_many_mutated_objects() -> None:
    fuzz_objects(seeds() + samples(), COUNT, SEED + 1)


@pytest.mark.slow
def test_many_mutated_texts() -> None:
    fuzz_texts(seeds() + samples(), COUNT, SEED + 1)
