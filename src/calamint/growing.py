"""Sequences that never change, of which each is the one before and one item more."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, final, overload

T = TypeVar("T", covariant=True)


@final
class Growing(Sequence[T]):
    """An immutable sequence; `append` returns a longer one, which shares the items of this one.

    That takes constant time for the last one that was made, and as long as a copy for others.
    """

    __slots__ = ("_items", "_length")

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._length = 0

    def append(self, item: Any) -> "Growing[T]":
        longer: Growing[T] = Growing()
        newest = len(self._items) == self._length
        longer._items = self._items if newest else self._items[: self._length]
        longer._items.append(item)
        longer._length = self._length + 1
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._items[i] for i in range(*index.indices(self._length))]
        return self._items[range(self._length)[index]]

    def __iter__(self) -> Iterator[T]:
        return (self._items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(list(self))
