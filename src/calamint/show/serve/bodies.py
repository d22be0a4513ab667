"""What requests may say. Anything else is refused with a sentence, before it reaches a study."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from calamint.checks import did_you_mean
from calamint.run import CAUSES, MOST_POINTS, MOST_ROWS, Cause

# JavaScript's safe integers; SQL's, for numbers of jobs and studies.
_LARGEST = 2**53
LARGEST_ID = 2**31 - 1
_LONGEST_WORDS = 2000


def _check_words(text: str) -> str:
    """Refuse what no database stores."""
    if "\0" in text or any(0xD800 <= ord(each) < 0xE000 for each in text):
        raise ValueError("it has characters that cannot be stored")
    return text


def _whole(value: Any) -> Any:
    """1.0 is 1, as in JavaScript, which has no whole numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Words = Annotated[str, Field(max_length=_LONGEST_WORDS), AfterValidator(_check_words)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_words)]
Count = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
Scalar = bool | Count | float | Words | None
Params = Annotated[dict[Name, Scalar], Field(max_length=1000)]


def _one_sentence(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """One for all kinds of values, where each would have its own."""
    try:
        return check(value)
    except ValidationError:
        raise ValueError(
            "write a number, [value, standard error], true or false, or null if it failed"
        ) from None


# A number, or a value with its standard error; null for a measurement that failed.
Measurement = Annotated[
    bool | Count | float | Annotated[list[float], Field(min_length=2, max_length=2)] | None,
    WrapValidator(_one_sentence),
]
Values = Annotated[dict[Name, Measurement], Field(max_length=1000)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]
# At most an hour: clients ask again.
Wait = Annotated[float, Field(ge=0, le=3600)]
Lease = Annotated[float, Field(gt=0, le=1e9)]
AttemptNumber = Annotated[
    int, Field(ge=1, le=LARGEST_ID, description="As `ask` said; the latest if left out.")
]


def _known_cause(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        raise ValueError(did_you_mean(str(value)[:50], CAUSES)) from None


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Ask(Body):
    resource: Name | None = Field(None, description="Let tasks compete for this resource.")
    task: Name | None = Field(None, description="Consider only this task.")
    lease: Lease | None = Field(
        None, description="Seconds after which the job is tried again, unless it is renewed."
    )
    confirm: bool = Field(False, description="Confirm the recommendation first.")
    n: Annotated[int, BeforeValidator(_whole), Field(ge=1, le=1000)] | None = Field(
        None, description="How many jobs to book, whatever the capacity."
    )
    wait: Wait = Field(0.0, description="Seconds to wait until something can start.")


class Attempt(Body):
    attempt: AttemptNumber | None = None


class Tell(Attempt):
    values: Values = Field(
        description="A number for each function, or [value, standard error]; true or false for a"
        " binary constraint; null for a measurement that failed."
    )
    seconds: Seconds | None = Field(None, description="How long the job ran.")
    params: Params | None = Field(None, description="Parameters that were others than suggested.")
    more: bool = Field(False, description="Functions that are left out will follow.")


class Fail(Attempt):
    reason: Words
    cause: Annotated[Cause, WrapValidator(_known_cause)] = "crashed"


class Renew(Attempt):
    lease: Lease


class Amend(Attempt):
    values: Values | None = None
    params: Params | None = None
    reason: Words = ""


class Complete(Attempt):
    values: Values
    more: bool = False


class Withdraw(Attempt):
    reason: Words


class Enqueue(Body):
    task: Name
    params: Params


class Row(Body):
    params: Params
    values: Values
    notes: Params = {}


class Add(Body):
    rows: Annotated[list[Row], Field(max_length=MOST_ROWS)]
    outside: bool = Field(False, description="Accept values out of bounds.")


class Change(Body):
    problem: dict[str, Any] = Field(description="As the study's `problem` is written.")
    reason: Words = ""


class Pause(Body):
    task: Name | None = None
    resource: Name | None = None
    reason: Words = ""


class Resume(Body):
    task: Name | None = None
    resource: Name | None = None


class Recommend(Body):
    delta: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="The probability with which limits may be broken."
    )
    kind: Literal["believed", "observed"] = "believed"


class Predict(Body):
    params: Params


class Gains(Body):
    points: Annotated[list[Params], Field(max_length=MOST_POINTS)]


def measured(values: Values) -> dict[str, Any]:
    """Values as studies take them: a value with its standard error is a pair."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
