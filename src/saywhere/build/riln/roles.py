"""Which model does what: a TOML file with a table for each role, and `default` for those that have none.

[default]
url = "http://127.0.0.1:8000/v1"
model = "qwen2.5-vl-72b"

[answers]
url = "https://example.org/v1"
model = "gemini-2.5-pro"
key_variable = "GEMINI_KEY"      the environment variable with its key
prompt_price = 1.25              for a million tokens of questions, in whatever currency
answer_price = 10.0              for a million tokens of answers
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from saywhere.build.llm import KEY_VARIABLE, Endpoint
from saywhere.core.errors import InvalidFile

ROLES = ("phrases", "questions", "answers", "dialogues")
DEFAULT = "default"


class RoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of the file."""

    url: str
    model: str
    key_variable: str = KEY_VARIABLE
    prompt_price: float = 0.0
    answer_price: float = 0.0
    timeout_s: float = 120.0
    tries: int = 5
    max_tokens: int = 4096
    temperature: float = 0.0

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            self.url, self.model, self.key_variable, self.timeout_s, self.tries, self.max_tokens, self.temperature
        )

    def price(self, prompt_tokens: int, answer_tokens: int) -> float:
        return (prompt_tokens * self.prompt_price + answer_tokens * self.answer_price) / 1e6


def same_for_all(url: str, model: str, key_variable: str = KEY_VARIABLE) -> dict[str, RoleSettings]:
    """One model in all roles."""
    return dict.fromkeys(ROLES, RoleSettings(url, model, key_variable))


def read_roles(path: str | Path) -> dict[str, RoleSettings]:
    """Settings of every role. What the file lacks, names twice or spells wrong is an InvalidFile."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFile(path, f"is not TOML: {error}") from error
    try:
        found = msgspec.convert(tables, type=dict[str, RoleSettings])
    except msgspec.ValidationError as error:
        raise InvalidFile(path, f"is not roles of models: {error}") from error
    return _complete(path, found)


def _complete(path: str | Path, found: Mapping[str, RoleSettings]) -> dict[str, RoleSettings]:
    unknown = set(found) - {*ROLES, DEFAULT}
    if unknown:
        raise InvalidFile(path, f"has no role {sorted(unknown)[0]!r}", f"roles are {', '.join((*ROLES, DEFAULT))}")
    missing = [role for role in ROLES if role not in found]
    if missing and DEFAULT not in found:
        raise InvalidFile(path, f"names no model for {missing[0]}", "add the table, or one called default")
    roles = {role: found.get(role) or found[DEFAULT] for role in ROLES}
    for role in roles.values():
        role.endpoint.is_local  # noqa: B018 - an address that cannot be is refused before any work
    return roles
