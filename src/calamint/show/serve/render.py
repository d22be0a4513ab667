"""Pages from templates, in which users' words are always escaped."""

import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from calamint.decide import short
from calamint.run import EventRecord, event_page, told_values
from calamint.show.serve.access import Visitor
from calamint.show.serve.calls import Call, state_of
from calamint.show.serve.static import address_of

_TEMPLATES = Path(__file__).parent / "templates"
# Users' words in a cell.
_LONGEST = 200
_LEAST_BITS = 5e-4
_MOST_PAUSES = 1000


def _when(moment: float | None) -> str:
    """In the time of this machine; pointing at it says which that is."""
    if moment is None:
        return ""
    at = datetime.fromtimestamp(moment).astimezone()
    shown = f"{at:%Y-%m-%d %H:%M:%S}"
    element = '<time datetime="{}" title="{} UTC{}">{}</time>'
    return Markup(element).format(at.isoformat(timespec="seconds"), shown, f"{at:%z}", shown)


def _ago(moment: float) -> str:
    passed = max(0.0, time.time() - moment)
    for length, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if passed >= length:
            count = int(passed / length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.3g} s" if seconds >= 0.001 else "under 1 ms"


def _shortened(text: object, longest: int = _LONGEST) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def _pairs(values: Mapping[str, Any], longest: int = _LONGEST) -> str:
    """Parameters or values by name, in a cell."""
    return _shortened(
        ", ".join(f"{name} = {short(value)}" for name, value in values.items()), longest
    )


def _hash(name: str) -> str:
    """What may stand in an id for a user's word."""
    return sha256(name.encode(errors="replace")).hexdigest()[:12]


def _bits(value: float) -> str:
    """As far as sampling knows them: it may find less than nothing."""
    if value >= _LEAST_BITS:
        return f"{value:.3g}"
    return f"< {_LEAST_BITS:.1g}" if value > 0 else "0"


def _owner(text: str) -> str:
    """Who runs an attempt: of a process what people can find it by."""
    if text.startswith("remote:"):
        return f"over HTTP, by {text.removeprefix('remote:')}"
    host, _, rest = text.partition("/")
    process, _, more = rest.partition("/")
    return f"by {host}, process {process}" if more else f"by {text}"


def _query(**parts: Any) -> str:
    """The end of an address, without what is not said."""
    given = {key: value for key, value in parts.items() if value not in (None, "", [], False)}
    return f"?{urlencode(given, doseq=True)}" if given else "?"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "ago": _ago,
    "bits": _bits,
    "hash": _hash,
    "duration": _duration,
    "owner": _owner,
    "pairs": _pairs,
    "quoted": shlex.quote,
    "short": short,
    "shortened": _shortened,
    "when": _when,
}
_ENVIRONMENT.globals |= {"address_of": address_of, "now": time.time, "query": _query}
_ENVIRONMENT.globals["least_bits"] = _LEAST_BITS


def render(request: Request, visitor: Visitor | None, template: str, **context: Any) -> str:
    """A page; `visitor` is None where nobody has shown who it is."""
    access = state_of(request)[2]
    return _ENVIRONMENT.get_template(template).render(
        visitor=visitor,
        form_token="" if visitor is None else access.form_token(visitor),
        path=request.url.path,
        **context,
    )


def page_of(
    call: Call, request: Request, template: str, status: int = 200, **context: Any
) -> HTMLResponse:
    """A page about a study."""
    html = render(
        request,
        call.visitor,
        template,
        study=call.record,
        base=f"/studies/{call.study}",
        may_manage=call.visitor.may("manage"),
        binary=call.problem.binary,
        done=_done(call, request),
        **context,
    )
    return HTMLResponse(html, status)


def _done(call: Call, request: Request) -> str:
    """What a form has done, by its own words."""
    words, proof = (request.query_params.get(name, "") for name in ("done", "proof"))
    return words if call.access.is_ours(call.visitor, words, proof) else ""


def safe(html: str) -> Markup:
    """HTML of ours, in which users' words are escaped."""
    return Markup(html)


# -- events in words ----------------------------------------------------------------------------

# What somebody decided, and not what jobs do by themselves.
BY_PEOPLE = (
    *("changed", "paused", "resumed", "amended", "completed", "withdrawn", "forgiven", "restored"),
    *("enqueued", "cancelled", "released", "added"),
)
_WORDS = {
    "asked": "started",
    "started": "started again",
    "told": "result reported",
    "closed": "told too late, and not used",
    "failed": "failed",
    "returned": "will be tried again",
    "held": "held",
    "released": "released",
    "enqueued": "enqueued",
    "cancelled": "cancelled",
    "amended": "amended",
    "completed": "completed",
    "withdrawn": "withdrawn",
    "forgiven": "forgiven",
    "restored": "restored",
    "added": "measurement added",
    "paused": "paused",
    "resumed": "resumed",
    "changed": "problem changed",
}


def event_rows(call: Call, events: Sequence[EventRecord]) -> list[dict[str, Any]]:
    """What happened, who caused it, and why, in words."""
    told = told_values(call.hub.database, call.study, events)
    binary = call.problem.binary
    return [_event_row(each, told.get(each.sequence, {}), binary) for each in events]


def pauses(call: Call) -> list[dict[str, Any]]:
    """Tasks and resources that are paused: since when, by whom, and why."""
    events = event_page(call.hub.database, call.study, 0, _MOST_PAUSES, ("paused", "resumed"), True)
    last = {(each.detail["kind"], each.detail["name"]): each for each in reversed(events)}
    return [
        {
            **each.detail,
            "by": each.caller or each.detail.get("by"),
            "time": each.time,
        }
        for each in last.values()
        if each.kind == "paused"
    ]


def _changed_values(told: Mapping[str, Any], binary: Collection[str]) -> list[str]:
    """Values that an event told, and those that counted before."""

    def words(name: str, value: float, sem: float | None) -> str:
        if name in binary:
            return "pass" if value else "fail"
        return short(value) if sem is None else f"{short(value)} ± {short(sem)}"

    said = []
    for name, (before, now) in told.items():
        if before is None:
            said.append(f"{name} = {words(name, *now)}")
        elif before != now:
            said.append(f"{name}: {words(name, *before)} → {words(name, *now)}")
    return said


def _event_row(
    event: EventRecord, told: Mapping[str, Any], binary: Collection[str]
) -> dict[str, Any]:
    detail = event.detail
    said: Mapping[str, Any] = detail if isinstance(detail, Mapping) else {}
    what = _WORDS.get(event.kind, event.kind)
    more = ""
    if event.kind == "changed":
        more = "; ".join(map(str, said.get("differences", ())))
    elif event.kind in ("paused", "resumed"):
        what = f"{said.get('kind', '')} {said.get('name', '')} {what}"
    elif event.kind in ("asked", "started") and isinstance(detail, Sequence):
        more = f"on {', '.join(map(str, detail))}" if detail else ""
    else:
        params = [f"measured at {_pairs(said['params'])}"] if said.get("params") else []
        more = ", ".join([*_changed_values(told, binary), *params])
    if event.kind == "told" and said.get("seconds") is not None:
        what += f" after {_duration(said['seconds'])}"
    reason = said.get("reason") or (detail if isinstance(detail, str) else "")
    return {
        "sequence": event.sequence,
        "time": event.time,
        "what": what,
        "more": _shortened(more, 1000),
        "job": event.job,
        "attempt": event.attempt,
        "by": event.caller or said.get("by") or "",
        "reason": _shortened(reason, 1000),
    }
