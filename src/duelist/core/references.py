"""Classes of the user's own by reference: `my_module:MyPolicy`, `path/to/file.py:MyPolicy`, or the name of an entry point.

What such a class computes is decided by its source: its file and all that this imports, installed libraries not counted. So a
class is loaded again when its source has changed, and the source can travel to where the file is not.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import Any, NamedTuple, get_type_hints
from weakref import WeakKeyDictionary

from duelist.core.checks import nearest, one_of, require_methods
from duelist.core.errors import InvalidInputError, UnknownNameError

Files = Mapping[str, str]  # path below the folder that Python imports from -> source
_REFERENCE = re.compile(r"\s*(?P<where>(?:[A-Za-z]:)?[^:(),=]+?\.py|[\w.]+)\s*:\s*(?P<name>[A-Za-z_][\w.]*)\s*")
_INSTALLED = ("site-packages", "dist-packages")


class Reference(NamedTuple):
    """Where a class is: a module or the path of a Python file, and the name of the class there."""

    where: str
    name: str

    def __str__(self) -> str:
        return f"{self.where}:{self.name}"

    @property
    def is_path(self) -> bool:
        """Whether a file is named, and not a module."""
        return self.where.endswith(".py")


class Source(NamedTuple):
    """The code behind a class.

    Attributes:
        module: full name, as Python imports it from `folder`.
        folder: what the names of files are relative to.
        files: the file of the class and all that it imports; of an installed package one entry, its digest.
        installed: whether the module belongs to an installed package, or to Python.
    """

    module: str
    folder: Path
    files: Files
    installed: bool


def parse_reference(text: str) -> tuple[Reference, str] | None:
    """The reference that a text begins with and the rest of the text, or None where it begins with something else.

    Example:
        >>> parse_reference("rules/greedy.py:Greedy(epsilon=0.1)")
        (Reference(where='rules/greedy.py', name='Greedy'), '(epsilon=0.1)')
        >>> parse_reference("FGTS:alpha=0") is None
        True
    """
    found = _REFERENCE.match(text)
    if found is None or text[found.end() : found.end() + 1] not in ("", "(", ":"):
        return None
    return Reference(found["where"], found["name"]), text[found.end() :]


def entry_points(group: str) -> dict[str, str]:
    """What installed packages offer under a group, as references by name.

    Example:
        >>> entry_points("duelist.nothing")
        {}
    """
    return {point.name: point.value for point in metadata.entry_points(group=group)}


_lock = threading.RLock()
_modules: dict[tuple[str, str], ModuleType] = {}
_references: WeakKeyDictionary[type[Any], str] = WeakKeyDictionary()


def load_class(text: str, files: Files | None = None) -> type[Any]:
    """The class that a reference names, loaded again if its source has changed since.

    Args:
        text: the reference.
        files: its source, as `source_of` gave it elsewhere. Where the files here are others, or missing, these are loaded.
    """
    parsed = parse_reference(text)
    if parsed is None or parsed[1]:
        raise UnknownNameError(f"a reference must be module:Class or path/to/file.py:Class; got {text!r}.")
    reference = parsed[0]
    try:
        source = _locate(reference)
    except InvalidInputError:
        if files is None:
            raise
        source = None
    with _lock:
        if source is not None and (files is None or dict(source.files) == dict(files)):
            return _load(reference, source)
        return _load(reference, _unpack(reference, files or {}))


def reference_to(kind: type[Any]) -> str:
    """The reference that names a class, for a file that outlives this process."""
    known = _references.get(kind)
    if known is not None:
        return known
    where = kind.__module__
    if where == "__main__":
        where = getattr(sys.modules["__main__"], "__file__", None) or ""
    if not where or "<" in kind.__qualname__:
        raise InvalidInputError(
            f"{kind.__qualname__} cannot be found again from another process: it is defined inside a function, or typed in a "
            f"notebook or at a prompt. Save it at the top of a file, and name it as file.py:{kind.__name__}."
        )
    reference = Reference(where, kind.__qualname__)
    if reference.is_path:  # the program itself, which must not be run a second time to have its class
        with _lock:
            _modules[_key(_locate(reference))] = sys.modules["__main__"]
    _references[kind] = str(reference)
    return str(reference)


def source_of(kind: type[Any]) -> Files:
    """The source of a class: what decides what it computes. Empty for one of duelist's own."""
    if kind.__module__.partition(".")[0] == "duelist":
        return {}
    text = reference_to(kind)
    parsed = parse_reference(text)
    return _locate(parsed[0]).files if parsed else {}


_hints: WeakKeyDictionary[type[Any], dict[str, Any]] = WeakKeyDictionary()


def type_hints(kind: type[Any]) -> dict[str, Any]:
    """The annotations of a class; what cannot be resolved may be anything."""
    if kind not in _hints:
        try:
            _hints[kind] = get_type_hints(kind)
        except Exception:  # an annotation is any expression, and may name what is there for type checkers only
            _hints[kind] = {name: Any for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    return _hints[kind]


class Registry(NamedTuple):
    """Classes by name: registered ones, those that installed packages offer, and the user's own by reference.

    Attributes:
        what: what the classes are, for messages.
        classes: the registered ones.
        group: entry points that installed packages offer further ones under.
        methods: what every one has.
    """

    what: str
    classes: dict[str, type[Any]]
    group: str
    methods: tuple[str, ...]

    def written(self, field: str, name: object) -> str:
        """How a class is written down: its registered name, its name among entry points, or a reference to it.

        Args:
            field: what an error calls it.
            name: one of these, in any case where it is registered; or the class itself.
        """
        if isinstance(name, type):
            known = self.classes.get(name.__name__) is name
            return name.__name__ if known else reference_to(self._checked(name))
        text = self.spelling(name)
        if text in self.classes:
            return text
        offered = entry_points(self.group)
        parsed = parse_reference(text)
        if text in offered or (parsed is not None and not parsed[1]):
            return text if parsed is None else str(parsed[0])
        return one_of(field, name, [*self.classes, *offered])

    def spelling(self, name: object) -> str:
        """A registered name as it is registered, whatever its case; any other text as it is."""
        text = str(name).strip()
        return next((known for known in self.classes if known.lower() == text.lower()), text)

    def find(self, name: str | type[Any], files: Files | None = None) -> type[Any]:
        """The class of that name; an unknown name says which is nearest.

        Args:
            name: a registered name in any case, a reference, the name of an entry point, or the class itself.
            files: source of a class of the user's own, where its file may be missing; see `source_of`.
        """
        if isinstance(name, type):
            return self._checked(name)
        text = self.written(self.what, name)
        known = self.classes.get(text)
        return known or self._checked(load_class(entry_points(self.group).get(text, text), files))

    def _checked(self, kind: type[Any]) -> type[Any]:
        require_methods(kind, self.what, self.methods)
        if not is_dataclass(kind):
            raise InvalidInputError(
                f"{kind.__name__} must be a dataclass of its parameters to be asked for by name. Put "
                f"@dataclass(frozen=True, kw_only=True) above it."
            )
        return kind


def _key(source: Source) -> tuple[str, str]:
    digest = hashlib.blake2b(digest_size=16)
    for name, text in sorted(source.files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    return f"{source.folder}/{source.module}", digest.hexdigest()


def _load(reference: Reference, source: Source) -> type[Any]:
    key = _key(source)
    if key not in _modules:
        _modules[key] = _import_installed(reference, source) if source.installed else _import_afresh(reference, source)
        for value in vars(_modules[key]).values():
            if isinstance(value, type) and value.__module__ == source.module:
                type_hints(value)  # now, while the module of that name is this one
    kind = _class_in(reference, _modules[key])
    _references.setdefault(kind, str(reference))
    return kind


def _class_in(reference: Reference, module: ModuleType) -> type[Any]:
    found: Any = module
    for part in reference.name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    classes = [name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__]
    raise UnknownNameError(
        f"{reference.where} must define the class {reference.name}; it has {', '.join(classes) or 'no class'}."
        f"{nearest(reference.name, classes)}"
    )


def _import_installed(reference: Reference, source: Source) -> ModuleType:
    try:
        return importlib.import_module(source.module)
    except Exception as error:
        raise _broken(reference, error) from error


def _import_afresh(reference: Reference, source: Source) -> ModuleType:
    """Run the files of a source as they are now: modules of an earlier version are forgotten."""
    paths = {_module_name(name): source.folder / name for name in source.files}
    homes = {name: path for name, path in paths.items() if path.is_file()}
    _own_modules.paths.update(homes)
    for name in paths:
        sys.modules.pop(name, None)
    if _own_modules not in sys.meta_path:
        sys.meta_path.insert(0, _own_modules)
    if str(source.folder) not in sys.path:
        sys.path.append(str(source.folder))  # for folders without __init__.py, and what is not Python
    importlib.invalidate_caches()
    try:
        return importlib.import_module(source.module)
    except Exception as error:
        raise _broken(reference, error) from error


def _broken(reference: Reference, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{reference} cannot be loaded: {reference.where} stops with {type(error).__name__}: {error}. "
        f"Run it with Python to see where."
    )


class _Uncached(SourceFileLoader):
    """Compiles the file as it is: compiled files of Python are told apart by seconds, and an edit may take less."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(self.get_data(path), path, "exec", dont_inherit=True)


class _OwnModules:
    """Finds the modules of users' own sources, also those that are imported late, inside a function."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        home = self.paths.get(name)
        if home is None or not home.is_file():
            return None
        inside = [str(home.parent)] if home.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, home, loader=_Uncached(name, str(home)), submodule_search_locations=inside
        )


_own_modules = _OwnModules()


_unpacked: dict[bytes, tempfile.TemporaryDirectory[str]] = {}


def _unpack(reference: Reference, files: Files) -> Source:
    """The source in a folder of its own, for a process that does not have the files."""
    home = next((name for name in sorted(files) if _ends_alike(name, reference)), None)
    if home is None:
        raise InvalidInputError(
            f"{reference} is not here: no such file or module. Where another machine computes, install its package there too."
        )
    digest = hashlib.blake2b(repr(sorted(files.items())).encode()).digest()
    if digest not in _unpacked:
        _unpacked[digest] = tempfile.TemporaryDirectory(prefix="duelist-")
    folder = Path(_unpacked[digest].name).resolve()
    for name, content in files.items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            raise InvalidInputError(f"the source of {reference} holds {name!r}, which is outside its folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return Source(_module_name(home), folder, files, installed=False)


def _ends_alike(name: str, reference: Reference) -> bool:
    """Whether a file of a source is the one that the reference names, from whatever folder."""
    if not reference.is_path:
        return _module_name(name) == reference.where
    here, there = (PurePath(part).parts[::-1] for part in (name, reference.where))
    return name.endswith(".py") and all(mine == theirs for mine, theirs in zip(here, there, strict=False))


def _locate(reference: Reference) -> Source:
    path = Path(reference.where).expanduser().resolve() if reference.is_path else _module_path(reference)
    if not path.is_file():
        raise InvalidInputError(f"{reference} cannot be loaded: there is no file {path}. Paths start at the current folder.")
    folder, module = path.parent, path.stem
    while (folder / "__init__.py").is_file():
        folder, module = folder.parent, f"{folder.name}.{module}"
    module = module.removesuffix(".__init__")
    top = module.partition(".")[0]
    if not _is_own(path):
        digest = hashlib.blake2b(digest_size=16)
        for file in sorted((folder / top).rglob("*.py")) if (folder / top).is_dir() else [path]:
            digest.update(file.read_bytes())
        return Source(module, folder, {top: digest.hexdigest()}, installed=True)
    if top in sys.stdlib_module_names or top == "duelist":
        raise InvalidInputError(
            f"{path.name} cannot be loaded: {top} is the name of another module. Give the file another name."
        )
    return Source(module, folder, _closure(path, folder), installed=False)


def _module_path(reference: Reference) -> Path:
    """The file of a module, in the current folder or wherever Python finds it."""
    for folder in _search_path():
        for candidate in _candidates(folder, reference.where):
            if candidate.is_file():
                return candidate
    try:
        spec = importlib.util.find_spec(reference.where)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise UnknownNameError(
            f"{reference} cannot be loaded: there is no module {reference.where!r} in {Path.cwd()} or where Python looks. "
            f"Name its file instead: path/to/file.py:{reference.name}."
        )
    return Path(spec.origin)


def _closure(path: Path, folder: Path) -> Files:
    """The file and every file of the user's own that it can reach by imports, by its path below where it was found."""
    bases = [folder, *_search_path()]
    files: dict[str, str] = {}
    packages = [each / "__init__.py" for each in path.parents if each.is_relative_to(folder) and each != folder]
    waiting = [(file, file.relative_to(folder).as_posix()) for file in (*packages, path) if file.is_file()]
    while waiting:
        file, name = waiting.pop()
        if name in files:
            continue
        try:
            files[name] = file.read_text(encoding="utf-8")
            statements = imports_in(files[name])
        except (OSError, SyntaxError, ValueError) as error:
            raise InvalidInputError(f"{file} cannot be read: {error}. It must be Python in UTF-8.") from error
        around = _module_name(name).split(".")
        if file.name != "__init__.py":
            around = around[:-1]
        for level, imported in statements:
            parts = [*(around[: len(around) - level + 1] if level else []), *imported.split(".")]
            for length in range(1, len(parts) + 1):  # a package runs before what is in it
                waiting += _find(".".join(parts[:length]), bases)
    return files


@lru_cache(maxsize=1024)
def imports_in(source: str) -> tuple[tuple[int, str], ...]:
    """Everything that a source imports, each with its number of leading dots; a name that is no module does no harm.

    Example:
        >>> imports_in("import numpy; from . import shapes")
        ((0, 'numpy'), (1, 'shapes'))
    """
    names: list[tuple[int, str]] = []
    with _lock:  # Python 3.11 parses in one thread at a time
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = f"{node.module}." if node.module else ""
            names += [(node.level, node.module)] if node.module else []
            names += [(node.level, inside + alias.name) for alias in node.names]
    return tuple(names)


def _find(module: str, bases: Sequence[Path]) -> list[tuple[Path, str]]:
    if not module or module.partition(".")[0] in {"duelist", *sys.stdlib_module_names}:
        return []
    for base in bases:
        for candidate in _candidates(base, module):
            if candidate.is_file() and _is_own(candidate):
                return [(candidate, candidate.relative_to(base).as_posix())]
    return []


def _candidates(folder: Path, module: str) -> tuple[Path, Path]:
    place = folder.joinpath(*module.split("."))
    return place.with_name(place.name + ".py"), place / "__init__.py"


def _module_name(name: str) -> str:
    return name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _search_path() -> list[Path]:
    """Folders that hold the user's own modules: the current one, and those of Python's that nothing is installed in."""
    folders = [Path.cwd(), *(Path(entry or ".").resolve() for entry in sys.path)]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir() and _is_own(folder)]


def _is_own(path: Path) -> bool:
    return not any(part in _INSTALLED for part in path.parts) and not any(path.is_relative_to(home) for home in _python_homes())


@cache
def _python_homes() -> tuple[Path, ...]:
    return tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})
