"""Cholesky factor and triangular inverse of large matrices, in tiles that fit the processor's cache.

A lower triangular matrix is cut into square tiles, each contiguous, the last ones filled up with the identity. Nearly all the
work is then products of two tiles, which are left to BLAS: as fast as LAPACK, but in one thread. Blocks of lanes fill the cores
already, and on a busy machine LAPACK's threads mostly wait for each other: at dim 128 its Cholesky factor took 68 ms in place
of 0.1. One thread also keeps the digits independent of how many there are.

The way from kernels to code for large matrices, which is loaded by the first kernel that meets one.

Such code takes seconds to compile and its BLAS tenths of a second to import, so kernels do not contain it: they call it by an
address. Kernels are kept on disk and read by other processes, where code lies at other addresses, so no address may be written
into them either. They name two symbols, which this module gives to LLVM when it is imported: a table of addresses, and a
function that fills the table. Where it cannot be filled, `is_large_code_at_hand` is False and kernels go on without.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import math
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils as _cgutils
from numba.core import types
from numba.extending import get_cython_function_address, intrinsic
from numba.np.numpy_support import carray as _carray

from duelist.kernels.compile import address_for_c, inner, maker
from duelist.kernels.linalg.vectors import dot
from duelist.typing import FloatArray

_CHOLESKY, _INVERT = range(2)
_TABLE, _FILL = "duelist_large_table", "duelist_large_fill"
_WORD, _INT = ir.IntType(64), ir.IntType(32)
_addresses = (ctypes.c_int64 * 2)()
_log = logging.getLogger(__name__)
cgutils: Any = _cgutils  # it has no types


def _fill() -> int:
    """Fill the table. No exception may pass through compiled code, so a failure is 0."""
    try:
        cholesky, invert = addresses()
    except Exception as error:
        _log.warning("large matrices are handled by plain loops, which are slow: %r", error)
        return 0
    # Another thread that finds the first address uses them all, so the first is written last.
    _addresses[_INVERT] = invert
    _addresses[_CHOLESKY] = cholesky
    return cholesky


# ctypes takes the interpreter lock for the call, which kernels have released.
_fill_from_c = ctypes.CFUNCTYPE(ctypes.c_int64)(_fill)
llvmlite.binding.add_symbol(_TABLE, ctypes.addressof(_addresses))
llvmlite.binding.add_symbol(_FILL, ctypes.cast(_fill_from_c, ctypes.c_void_p).value)


def _load(builder: Any, slot: int) -> Any:
    """Code that reads an address from the table."""
    known = builder.module.globals.get(_TABLE)
    table = cgutils.add_global_variable(builder.module, ir.ArrayType(_WORD, 2), _TABLE) if known is None else known
    return builder.load(builder.gep(table, [ir.Constant(_INT, 0), ir.Constant(_INT, slot)], inbounds=True))


def _type_first_address(_typing: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        return _load(builder, _CHOLESKY)

    return types.int64(), generate


def _type_fill_table(_typing: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(_WORD, []), _FILL), [])

    return types.int64(), generate


def _caller(slot: int) -> Any:
    """A function for kernels that calls the code in a slot with two matrices, given by their first entries, and their size."""

    def type_call(_typing: Any, out: Any, matrix: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            arrays = [context.make_array(signature.args[n])(context, builder, values[n]) for n in range(2)]
            arguments = [*(array.data for array in arrays), cgutils.unpack_tuple(builder, arrays[0].shape)[0]]
            called = ir.FunctionType(_WORD, [argument.type for argument in arguments])
            return builder.call(builder.inttoptr(_load(builder, slot), called.as_pointer()), arguments)

        return types.int64(out, matrix), generate

    return intrinsic(type_call)


_first_address: Any = intrinsic(_type_first_address)
_fill_table: Any = intrinsic(_type_fill_table)
_call_cholesky, _call_invert = _caller(_CHOLESKY), _caller(_INVERT)


@inner
def is_large_code_at_hand(out: FloatArray, matrix: FloatArray) -> bool:
    """Whether the functions below may be called with these: both contiguous by rows, and the code loaded, now if not before."""
    row, entry = out.shape[0] * out.itemsize, out.itemsize
    is_dense = out.strides[0] == row and out.strides[1] == entry and matrix.strides[0] == row and matrix.strides[1] == entry
    return bool(is_dense and (_first_address() != 0 or _fill_table() != 0))


@inner
def large_cholesky_into(factor: FloatArray, matrix: FloatArray) -> bool:
    """`cholesky_into` of a large matrix."""
    return bool(_call_cholesky(factor, matrix) != 0)


@inner
def invert_large_lower(inverse: FloatArray, lower: FloatArray) -> None:
    """`invert_lower` of a large matrix."""
    _call_invert(inverse, lower)


TILE = 48  # OpenBLAS keeps a product of up to 64^3 to one thread; a smaller tile wastes less where dim is no multiple of it

_MODULE, _ROUTINE, _SYMBOL = "scipy.linalg.cython_blas", "dgemm", "duelist_dgemm"
_BEGINS = b"void (char *, char *, int *, int *, int *, "  # with other integers it could not be called as below
carray: Any = _carray


def addresses() -> tuple[int, int]:
    """Addresses of the Cholesky factor and of the inverse, compiled or read from disk."""
    # Before either: code that was read from disk looks for the symbol at once.
    llvmlite.binding.add_symbol(_SYMBOL, _dgemm_of_scipy())
    signature = "int64(CPointer(float64), CPointer(float64), int64)"
    return address_for_c(cholesky_at, signature), address_for_c(inverse_at, signature)


def _dgemm_of_scipy() -> int:
    """Address of SciPy's dgemm; ImportError if its signature is another."""
    signature_of = ctypes.pythonapi.PyCapsule_GetName
    signature_of.restype, signature_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    signature: bytes = signature_of(importlib.import_module(_MODULE).__pyx_capi__[_ROUTINE])
    if not signature.startswith(_BEGINS):
        raise ImportError(f"{_MODULE}.{_ROUTINE} must begin with {_BEGINS!r}; got {signature!r}.")
    return int(get_cython_function_address(_MODULE, _ROUTINE))


def _type_dgemm(_typing: Any, out: Any, left: Any, right: Any, weight: Any, keep: Any, transposed: Any) -> Any:
    """Call dgemm in Fortran's way, every argument by its address; see `_add_product`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def number(value: Any) -> Any:
            return cgutils.alloca_once_value(builder, value)

        def character(letter: str) -> Any:
            return ir.Constant(ir.IntType(8), ord(letter))

        c, b, a = (context.make_array(signature.args[n])(context, builder, values[n]).data for n in range(3))
        size = number(ir.Constant(ir.IntType(32), TILE))
        turn = number(builder.select(values[5], character("T"), character("N")))
        alpha, beta = number(values[3]), number(values[4])
        # A matrix by rows is its transpose by columns, and out^T = right^T left^T: left and right change places.
        arguments = [turn, number(character("N")), size, size, size, alpha, a, size, b, size, beta, c, size]
        called = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        builder.call(cgutils.get_or_insert_function(builder.module, called, _SYMBOL), arguments)
        return context.get_dummy_value()

    return types.void(out, left, right, weight, keep, transposed), generate


_dgemm: Any = intrinsic(_type_dgemm)


@inner
def _add_product(out: FloatArray, left: FloatArray, right: FloatArray, weight: float, keep: float, transposed: bool) -> None:
    """Set the tile `out` to keep * out + weight * left @ right, or left @ right^T if `transposed`.

    `out` is neither of the others. With keep = 0 it may hold anything before.
    """
    _dgemm(out, left, right, weight, keep, transposed)


@inner
def _place(i: int, j: int) -> int:
    """Where the tile in row i and column j <= i is kept."""
    return i * (i + 1) // 2 + j


@inner
def _copy_tile(out: FloatArray, tile: FloatArray) -> None:
    for i in range(TILE):
        for j in range(TILE):
            out[i, j] = tile[i, j]


@maker
def _cut_lower(matrix: FloatArray) -> FloatArray:
    """The tiles (n_tiles, TILE, TILE) of the lower triangle."""
    dim = matrix.shape[0]
    n = (dim + TILE - 1) // TILE
    tiles = np.zeros((n * (n + 1) // 2, TILE, TILE))
    for i in range(dim):
        for j in range(0, i + 1, TILE):
            row = tiles[_place(i // TILE, j // TILE), i % TILE]
            for k in range(j, min(j + TILE, i + 1)):
                row[k - j] = matrix[i, k]
    for i in range(dim, n * TILE):
        tiles[_place(n - 1, n - 1), i % TILE, i % TILE] = 1.0
    return tiles


@inner
def _join_lower(out: FloatArray, tiles: FloatArray) -> None:
    """Fill out (dim, dim) with the lower triangle that is cut into `tiles`, and zeros above it."""
    dim = out.shape[0]
    for i in range(dim):
        for j in range(0, i + 1, TILE):
            row = tiles[_place(i // TILE, j // TILE), i % TILE]
            for k in range(j, min(j + TILE, i + 1)):
                out[i, k] = row[k - j]
        for j in range(i + 1, dim):
            out[i, j] = 0.0


@inner
def _factorise_tile(tile: FloatArray) -> bool:
    """Replace a tile by its Cholesky factor; False if it is not positive definite."""
    for i in range(TILE):
        for j in range(i):
            tile[i, j] = (tile[i, j] - dot(tile[i], tile[j], j)) / tile[j, j]
        pivot = tile[i, i] - dot(tile[i], tile[i], i)
        if not pivot > 0.0:
            return False
        tile[i, i] = math.sqrt(pivot)
        for j in range(i + 1, TILE):
            tile[i, j] = 0.0
    return True


@inner
def _invert_tile(inverse: FloatArray, tile: FloatArray) -> None:
    """Fill `inverse` with that of a lower triangular tile, row by row."""
    for i in range(TILE):
        for j in range(TILE):
            inverse[i, j] = 0.0
        for k in range(i):
            weight = tile[i, k]
            for j in range(k + 1):
                inverse[i, j] -= weight * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= tile[i, i]
        inverse[i, i] = 1.0 / tile[i, i]


@maker
def _cholesky(factor: FloatArray, matrix: FloatArray) -> bool:
    """Lower Cholesky factor of `matrix`, zeros above it; False, and `factor` as it was, if it is not positive definite."""
    tiles = _cut_lower(matrix)
    n = (matrix.shape[0] + TILE - 1) // TILE
    inverse, panel = np.empty((TILE, TILE)), np.empty((TILE, TILE))
    for j in range(n):
        for i in range(j, n):
            for k in range(j):
                _add_product(tiles[_place(i, j)], tiles[_place(i, k)], tiles[_place(j, k)], -1.0, 1.0, True)
        corner = tiles[_place(j, j)]
        if not _factorise_tile(corner):
            return False
        # Multiplying by the inverse of the corner is a product of tiles; solving with it would not be.
        _invert_tile(inverse, corner)
        for i in range(j + 1, n):
            _copy_tile(panel, tiles[_place(i, j)])
            _add_product(tiles[_place(i, j)], panel, inverse, 1.0, 0.0, True)
    _join_lower(factor, tiles)
    return True


@maker
def _invert(inverse: FloatArray, lower: FloatArray) -> None:
    """Inverse of a lower triangular matrix, zeros above it.

    With X the inverse of L, X_ii = L_ii^-1 and X_ij = -X_ii sum_k L_ik X_kj over j <= k < i. Row i of tiles of X depends on
    the rows above it and takes the place of row i of L.
    """
    tiles = _cut_lower(lower)
    n = (lower.shape[0] + TILE - 1) // TILE
    corner, total = np.empty((TILE, TILE)), np.empty((TILE, TILE))
    for i in range(n):
        _invert_tile(corner, tiles[_place(i, i)])
        for j in range(i):
            for k in range(j, i):
                _add_product(total, tiles[_place(i, k)], tiles[_place(k, j)], 1.0, 0.0 if k == j else 1.0, False)
            _add_product(tiles[_place(i, j)], corner, total, -1.0, 0.0, False)
        _copy_tile(tiles[_place(i, i)], corner)
    _join_lower(inverse, tiles)


def cholesky_at(factor: Any, matrix: Any, dim: int) -> int:
    """`_cholesky` of matrices given by the addresses of their first entries."""
    return 1 if _cholesky(carray(factor, (dim, dim)), carray(matrix, (dim, dim))) else 0


def inverse_at(inverse: Any, lower: Any, dim: int) -> int:
    """`_invert` of matrices given by the addresses of their first entries."""
    _invert(carray(inverse, (dim, dim)), carray(lower, (dim, dim)))
    return 1
