"""The exceptions of Weft."""


class Error(Exception):
    """Something that Weft refuses, or that failed.

    ``code`` is a word that never changes its meaning, ``cause`` says what happened, and ``cure``
    what to do about it.
    """

    code: str
    cause: str
    cure: str

    def __init__(self, code: str, cause: str, cure: str) -> None:
        super().__init__(code, cause, cure)
        self.code = code
        self.cause = cause
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.cause}: {self.cure} [{self.code}]"


class Ended(Error):
    """Nothing more can come: the member is over, or the writer of a ring is."""
