"""Base classes and shared parts of the documented schemas.

The base classes fill a schema from an object of our own classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model import port
from resume_hooks.sessions.agents.claude import ResumeCommands
from resume_hooks.sessions.agents.registry import RESUMABLE_AGENT_NAMES
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts import invariants, tokens

T = TypeVar("T")


class StrictModel(BaseModel):
    """A schema that allows only the documented fields.

    It is filled from a dictionary or from an object. ``FieldDeclarer`` says how each field is read
    from the object.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _collect_fields(cls, value: Any) -> dict[str, Any]:
        fields = {}
        for name, inner in _read_fields(cls, value).items():
            fields[name] = _replace_surrogates(inner)
        return fields


def _read_fields(schema_class: type[BaseModel], value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, ValueWithFields):
        return {**_read_fields(schema_class, value.value), **value.fields}
    fields = {}
    for name, field in schema_class.model_fields.items():
        source = field.json_schema_extra
        if isinstance(source, _FieldReader):
            fields[name] = source.get(value)
    return fields


class FieldDeclarer(Generic[T]):
    """Declare fields of a schema that is filled from an object of type T.

    Each field has a function that reads its value from the object.
    """

    def __call__(self, get: Callable[[T], object], description: str = "") -> Any:
        """Return a field. Leave ``description`` out if the field's type already has one."""
        source = _FieldReader(get)
        if description:
            return Field(description=description, json_schema_extra=source)
        return Field(json_schema_extra=source)


class _FieldReader:
    """The function that reads a field's value.

    Pydantic calls an instance in order to change the field's JSON schema. The call changes nothing.
    """

    def __init__(self, get: Callable[[Any], object]) -> None:
        self.get = get

    def __call__(self, _schema: dict[str, Any]) -> None:
        """Leave the JSON schema unchanged."""


def _replace_surrogates(value: Any) -> Any:
    """Replace the lone surrogates in a text, list or dictionary, because pydantic rejects them.

    Objects of our own classes are returned unchanged. The surrogates in them are replaced when
    their own schemas read them.
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_replace_surrogates(item) for item in value]
    return value


commands_field = FieldDeclarer[ResumeCommands]()


class Commands(StrictModel):
    """The commands that continue a session."""

    in_client: str = commands_field(lambda commands: commands.client_command)
    shell: str = commands_field(lambda commands: commands.shell_command)


check_field = FieldDeclarer[invariants.Check]()


class Check(StrictModel):
    """A check of a written file: its name, and whether the file passed it."""

    name: str = check_field(lambda check: check.name)
    ok: bool = check_field(lambda check: check.ok)


receipt_field = FieldDeclarer[Receipt]()


class ReceiptSchema(StrictModel):
    """The child that a verb wrote or, if ``written`` is false, would write."""

    session_id: str = receipt_field(lambda receipt: receipt.session_id)
    file: str = receipt_field(lambda receipt: receipt.file)
    title: str = receipt_field(lambda receipt: receipt.title)
    parent_session_id: str = receipt_field(lambda receipt: receipt.parent_session_id)
    parent_file: str = receipt_field(lambda receipt: receipt.parent_file)
    kind: str = receipt_field(lambda receipt: receipt.kind)
    written: bool = receipt_field(lambda receipt: receipt.written)
    tokens_before: int = receipt_field(lambda receipt: receipt.tokens_before)
    tokens_after: int = receipt_field(lambda receipt: receipt.tokens_after)
    chars_saved: int = receipt_field(lambda receipt: receipt.chars_saved)
    tools_trimmed: int = receipt_field(lambda receipt: receipt.tools_trimmed)
    checks: list[Check] = receipt_field(lambda receipt: receipt.checks)
    agent: str = receipt_field(
        lambda receipt: receipt.agent,
        f"the agent that continues the child: {', '.join(RESUMABLE_AGENT_NAMES)}",
    )
    commands: Commands = receipt_field(lambda receipt: receipt.commands)


costs_field = FieldDeclarer[port.CallCosts]()


class CallCosts(StrictModel):
    """The total cost of all calls of a model.

    ``model`` is the model of the last call.
    """

    model: str = costs_field(lambda costs: costs.model)
    calls: int = costs_field(lambda costs: costs.calls)
    tokens_in: int = costs_field(lambda costs: costs.input_tokens)
    tokens_out: int = costs_field(lambda costs: costs.output_tokens)
    cost_usd: float | None = costs_field(
        lambda costs: costs.cost_usd, "the cost that the client reported; null if it reported none"
    )
    seconds: float = costs_field(lambda costs: costs.seconds)


size_field = FieldDeclarer[tokens.ContextSize]()


class ContextSize(StrictModel):
    """The number of tokens in a session's context, and the size of the context window.

    ``kind`` says how ``tokens`` was determined. ``added`` is the estimated number of tokens that
    came after the last answer. If ``window_known`` is false, ``window`` is the smallest possible
    window, so that warnings come in time, and no percentage is shown.
    """

    tokens: int = size_field(lambda size: size.tokens)
    window: int = size_field(lambda size: size.window)
    kind: Literal["measured", "added", "estimated", "unknown"] = size_field(
        lambda size: size.kind,
        "measured: the API counted the tokens with the last answer; added: much was added after that answer",
    )
    reason: str = size_field(lambda size: size.uncertainty_reason, "why the number is not measured")
    window_known: bool = size_field(
        lambda size: size.is_window_known,
        "false: the window is unknown, and `window` is the smallest possible window",
    )
    added: int = size_field(
        lambda size: size.added_tokens,
        "the estimated number of tokens that came after the counted answer",
    )
    measured: bool = size_field(
        lambda size: size.is_measured,
        "true: the API counted all tokens except those in added; false: all are estimated",
    )
    percent: int | None = size_field(
        lambda size: size.percent,
        "the used percentage of the window, not counting the space for an answer; null if unknown",
    )
    compacts_at_once: bool = size_field(lambda size: size.compacts_at_once)


ByteCount = Annotated[int, Field(description="bytes")]
LineNumbers = Annotated[
    list[int], Field(description="0-based numbers of lines without a JSON object")
]
