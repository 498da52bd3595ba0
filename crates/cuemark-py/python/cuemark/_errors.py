"""What goes wrong, in the words of the command line."""

from __future__ import annotations

from typing import Optional


class CuemarkError(ValueError):
    """Something that cannot be done as asked. ``message`` says what is wrong and where, ``hint`` what to do about it."""

    message: str
    hint: Optional[str]

    def __init__(self, message: str, hint: Optional[str] = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[CuemarkError], tuple[str, Optional[str]]]:
        return type(self), (self.message, self.hint)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class CuemarkFileError(CuemarkError, OSError):
    """A file or folder that is not there, cannot be read, or may not be replaced."""


class CuemarkTypeError(CuemarkError, TypeError):
    """An argument of a type that nothing can be made of."""
