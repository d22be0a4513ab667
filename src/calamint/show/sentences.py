"""Sentences on a terminal."""

from rich.console import Console


def say(console: Console, sentence: str) -> None:
    """Wrapped between words on a terminal, and on one line elsewhere."""
    console.print(sentence, highlight=False, markup=False, soft_wrap=not console.is_terminal)
