"""How configuration that is no object of Kubernetes is applied from a file.

A new kind goes into `WRITTEN`, into `APPLY_ORDER` (items.py), and into `EXPORTED`
(selectors/files/configuration.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from scheduler.admission.reading.queue import name_of
from scheduler.admission.reading.reader import Reader
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.change_sets import KINDS, POLICY, POLICY_TEXT, THE_POLICY
from scheduler.domain.queues import ROOT
from scheduler.models import ChangeSet, Grant, GroupMapping, NoticeRule, PriceList
from scheduler.selectors.change_sets.listing import queues_of
from scheduler.selectors.files import configuration as stored
from scheduler.services.accounts import access, grants, sign_on, users
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.notices.choices import save_rule
from scheduler.services.records import audit
from scheduler.services.sessions.policies import replace_policy
from scheduler.services.sessions.requests import set_period
from scheduler.services.usage.prices import read_day, set_prices

Spec = dict[str, Any]

_OF_A_QUEUE: Final = ("Grant", "GroupMapping")
"""They ask for rights on their own queue."""


@dataclass(frozen=True, slots=True)
class Written:
    """One kind: the fields of its spec, what is stored of an object, and how it is written.

    `write` gets the whole spec, and what was stored before or None.
    """

    fields: tuple[str, ...]
    current: Callable[[str, Spec], Spec | None]
    write: Callable[[str, Spec, Spec | None, Actor], None]
    only_name: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    before: Spec | None
    after: Spec


def write_configuration(kind: str, manifest: Mapping[str, Any], by: Actor) -> Outcome:
    """Raises `Rejected`, `Forbidden`."""
    written = WRITTEN[kind]
    given = _given_spec(kind, written, manifest)
    name = _given_name(kind, written, manifest, given)
    if kind not in _OF_A_QUEUE:
        access.require_cluster(by, doing=f"apply a {kind}")
    before = written.current(name, given)
    wanted = {**(before or {}), **given}
    if before is None or wanted != before or kind in _OF_A_QUEUE:
        written.write(name, wanted, before, by)
    return Outcome(name, before, written.current(name, wanted) or wanted)


def _given_spec(kind: str, written: Written, manifest: Mapping[str, Any]) -> Spec:
    reader = Reader()
    spec = dict(reader.mapping(manifest.get("spec"), "spec"))
    reader.whole(spec)
    for field in spec:
        if field not in written.fields:
            fix = "leave it out"
            if written.fields:
                fix = f"one of {', '.join(written.fields)}"
            message = f"{field} is not a field of a {kind}."
            reader.refuse("unknown_field", f"spec.{field}", message, fix)
    if reader.violations:
        raise Rejected(reader.violations)
    return spec


def _given_name(kind: str, written: Written, manifest: Mapping[str, Any], spec: Spec) -> str:
    given = name_of(manifest)
    expected = written.only_name
    if kind == "Grant":
        spec.setdefault("queue", ROOT)
        expected = stored.grant_name(spec)
    if kind == "GroupMapping":
        spec.setdefault("queue", ROOT)
        expected = stored.group_mapping_name(spec)
    if kind == "NoticeRule":
        expected = stored.notice_rule_name(spec)
    if not expected and not given:
        raise _refused("name_required", "metadata.name", f"A {kind} needs a name.", "give one")
    if expected and given not in ("", expected):
        message = f"The name of this {kind} is “{expected[:80]}”, not “{given[:80]}”."
        raise _refused("invalid_name", "metadata.name", message, "correct it, or leave it out")
    return given or expected


def _refused(rule: str, field: str, message: str, fix: str) -> Rejected:
    return Rejected([Violation(rule, "", field, message, fix)])


def _group_now(name: str, _spec: Spec) -> Spec | None:
    if Group.objects.filter(name=name).exists():
        return {}
    return None


def _write_group(name: str, _spec: Spec, _before: Spec | None, by: Actor) -> None:
    users.save_group({"name": name}, by=by)


def _user_now(name: str, _spec: Spec) -> Spec | None:
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        return None
    found: Spec = stored.user_manifest(user)["spec"]
    return found


def _write_user(name: str, spec: Spec, before: Spec | None, by: Actor) -> None:
    existing = ""
    if before is not None:
        existing = name
    users.save_user({"username": name, **spec}, by=by, username=existing)


def _grant_now(_name: str, spec: Spec) -> Spec | None:
    rows = Grant.objects.filter(
        role=str(spec.get("role")), queue__name=str(spec.get("queue")), mapping=None
    )
    if spec.get("user"):
        rows = rows.filter(user__username=str(spec["user"]))
    else:
        rows = rows.filter(group__name=str(spec.get("group")))
    row = rows.select_related("user", "group", "queue").first()
    if row is None:
        return None
    found: Spec = stored.grant_manifest(row)["spec"]
    return found


def _write_grant(_name: str, spec: Spec, _before: Spec | None, by: Actor) -> None:
    """The same grant again is the one that is there."""
    texts = _texts_of(spec, ("user", "group", "role", "queue"))
    grants.grant_role(
        user=texts["user"],
        group=texts["group"],
        role=texts["role"],
        queue=texts["queue"],
        by=by,
    )


def _mapping_now(_name: str, spec: Spec) -> Spec | None:
    row = GroupMapping.objects.filter(
        provider_group=str(spec.get("providerGroup")),
        role=str(spec.get("role")),
        queue__name=str(spec.get("queue")),
    )
    found = row.select_related("queue").first()
    if found is None:
        return None
    stored_spec: Spec = stored.group_mapping_manifest(found)["spec"]
    return stored_spec


def _write_mapping(_name: str, spec: Spec, _before: Spec | None, by: Actor) -> None:
    texts = _texts_of(spec, ("providerGroup", "role", "queue"))
    sign_on.map_group(texts["providerGroup"], role=texts["role"], queue=texts["queue"], by=by)


def _texts_of(spec: Spec, fields: Iterable[str]) -> dict[str, str]:
    texts = {}
    for field in fields:
        value = spec.get(field, "")
        if not isinstance(value, str):
            message = f"spec.{field} must be text."
            raise _refused("invalid_value", f"spec.{field}", message, "write text")
        texts[field] = value
    return texts


def _cluster_now(_name: str, _spec: Spec) -> Spec | None:
    found: Spec = stored.cluster_manifest()["spec"]
    return found


def _write_cluster(_name: str, spec: Spec, before: Spec | None, by: Actor) -> None:
    try:
        seconds = float(str(spec["periodSeconds"]))
        if before is None or seconds != before["periodSeconds"]:
            set_period(seconds, by=by)
    except ValueError as problem:
        message = f"periodSeconds cannot be that: {problem}."
        fix = "write a number of seconds"
        raise _refused("invalid_value", "spec.periodSeconds", message, fix) from None


def _policy_now(_name: str, _spec: Spec) -> Spec | None:
    found: Spec = stored.policy_manifest()["spec"]
    return found


def _write_policy(_name: str, spec: Spec, _before: Spec | None, by: Actor) -> None:
    text = spec[POLICY_TEXT]
    if not isinstance(text, str):
        message = "spec.policy must be the text of a policy."
        raise _refused("invalid_value", "spec.policy", message, "write text")
    replace_policy(text, by=by)


def _prices_now(name: str, _spec: Spec) -> Spec | None:
    row = PriceList.objects.filter(valid_from=read_day(name)).first()
    if row is None:
        return None
    found: Spec = stored.price_list_manifest(row)["spec"]
    return found


def _write_prices(name: str, spec: Spec, _before: Spec | None, by: Actor) -> None:
    set_prices(name, spec.get("currency"), spec.get("prices"), by=by)


def _change_set_now(name: str, _spec: Spec) -> Spec | None:
    draft = stored.named_sets().get(name)
    if draft is None:
        return None
    found: Spec = stored.change_set_manifest(draft)["spec"]
    return found


def _write_change_set(name: str, spec: Spec, before: Spec | None, by: Actor) -> None:
    reader = Reader()
    draft = stored.named_sets().get(name) or ChangeSet(name=name)
    if not draft.is_draft:
        message = f"The change set {name} is planned, so it cannot be changed."
        raise _refused("set_is_planned", "spec", message, "cancel its plan first")
    reader.text(draft.name, "metadata.name", longest=100)
    draft.description = reader.text(spec.get("description"), "spec.description", longest=1024)
    draft.author = reader.text(spec.get("author"), "spec.author", by.name, longest=150)
    items = [_read_item(reader, at, item) for at, item in enumerate(_items_of(reader, spec))]
    if reader.violations:
        raise Rejected(reader.violations)
    draft.items = items
    draft.queues = queues_of(draft.changes)
    draft.resource_version += draft.pk is not None
    draft.save()
    after = stored.change_set_manifest(draft)["spec"]
    audit.record(by, "ImportChangeSet", "ChangeSet", name, before=before, after=after)


def _items_of(reader: Reader, spec: Spec) -> list[object]:
    return reader.items(spec.get("items"), "spec.items")


def _read_item(reader: Reader, index: int, given: object) -> Spec:
    """An object as it was when it was added, and as it is wanted."""
    place = f"spec.items[{index}]"
    item = reader.mapping(given, place)
    kind = reader.text(item.get("kind"), f"{place}.kind")
    if kind not in KINDS:
        message = f"{place}.kind is “{kind[:40]}”; a change set holds {', '.join(KINDS)}."
        reader.refuse("invalid_kind", f"{place}.kind", message)
    name = reader.text(item.get("name"), f"{place}.name", longest=253)
    if item.get("base") is None and item.get("wanted") is None:
        message = f"{place} has neither base nor wanted."
        reader.refuse("invalid_value", place, message, "give one of them")
    return {
        "kind": kind,
        "name": name,
        "base": _manifest_or_none(reader, item, place, "base"),
        "wanted": _manifest_or_none(reader, item, place, "wanted"),
    }


def _manifest_or_none(
    reader: Reader, item: Mapping[str, Any], place: str, field: str
) -> Mapping[str, object] | None:
    if item.get(field) is None:
        return None
    return reader.mapping(item[field], f"{place}.{field}")


def _notice_rule_now(_name: str, spec: Spec) -> Spec | None:
    rule = _stored_rule(spec)
    if rule is None:
        return None
    found: Spec = stored.notice_rule_manifest(rule)["spec"]
    return found


def _stored_rule(spec: Spec) -> NoticeRule | None:
    rows = NoticeRule.objects.filter(user__username=str(spec.get("user")), kind=spec.get("kind"))
    if spec.get("queue"):
        rows = rows.filter(queue__name=str(spec["queue"]))
    else:
        rows = rows.filter(queue=None)
    return rows.select_related("user", "queue").first()


def _write_notice_rule(_name: str, spec: Spec, _before: Spec | None, by: Actor) -> None:
    """The channels of a rule that is there stay as they are."""
    user = get_user_model().objects.filter(username=str(spec.get("user"))).first()
    if user is None:
        message = f"There is no user {str(spec.get('user'))[:150]}."
        raise _refused("unknown_user", "spec.user", message, "name one that there is")
    try:
        times = float(str(spec.get("timesUsual", 2.0)))
    except ValueError:
        message = "spec.timesUsual must be a number."
        raise _refused("invalid_value", "spec.timesUsual", message, "write a number") from None
    channels: list[str] = []
    rule = _stored_rule(spec)
    if rule is not None:
        channels = [channel.name for channel in rule.channels.all()]
    save_rule(
        user,
        str(spec.get("kind")),
        queue=str(spec.get("queue") or ""),
        channels=channels,
        times_usual=times,
        by=by,
    )


def _plan_now(name: str, _spec: Spec) -> Spec | None:
    planned = stored.named_sets().get(name)
    if planned is None:
        return None
    return stored.active_plans().get(planned.pk)


def _write_plan(name: str, spec: Spec, before: Spec | None, _by: Actor) -> None:
    """Planned in the name of whoever planned it, so with their rights."""
    # change sets are applied as files are, so they import this
    from scheduler.services.change_sets.plans import Wish, plan_change_set

    draft = stored.named_sets().get(name)
    if draft is None:
        message = f"There is no change set {name[:100]} to be planned."
        raise _refused("unknown_set", "metadata.name", message, "put it into the file too")
    if before is not None:
        message = f"The change set {name} is planned for other times already."
        raise _refused("set_is_planned", "spec", message, "cancel its plan first")
    reader = Reader()
    wish = Wish(
        begin=reader.text(spec.get("begin"), "spec.begin"),
        end=reader.text(spec.get("end"), "spec.end"),
        zone=reader.text(spec.get("timeZone"), "spec.timeZone", "UTC"),
        weekly=spec.get("weekly") is True,
        last_date=reader.text(spec.get("lastDate"), "spec.lastDate"),
    )
    planner = _planner(reader, spec)
    if reader.violations:
        raise Rejected(reader.violations)
    plan_change_set(draft.pk, wish, by=planner)


def _planner(reader: Reader, spec: Spec) -> Actor:
    name = reader.text(spec.get("plannedBy"), "spec.plannedBy", SYSTEM.name, longest=150)
    scopes = None
    if spec.get("scopes") is not None:
        scopes = frozenset(str(scope) for scope in reader.items(spec["scopes"], "spec.scopes"))
    if name == SYSTEM.name:
        return SYSTEM
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        reader.refuse("unknown_user", "spec.plannedBy", f"There is no user {name}.")
    return Actor(name, Door.MANIFEST, user=user, scopes=scopes)


_USER_FIELDS = ("email", "firstName", "lastName", "isActive", "isClusterAdmin", "groups")

_PLAN_FIELDS = ("begin", "end", "timeZone", "weekly", "lastDate", "plannedBy", "scopes")

WRITTEN: Final[dict[str, Written]] = {
    "Group": Written((), _group_now, _write_group),
    "User": Written(_USER_FIELDS, _user_now, _write_user),
    "Grant": Written(("user", "group", "role", "queue"), _grant_now, _write_grant),
    "GroupMapping": Written(("providerGroup", "role", "queue"), _mapping_now, _write_mapping),
    "Cluster": Written(("periodSeconds",), _cluster_now, _write_cluster, stored.THE_CLUSTER),
    POLICY: Written((POLICY_TEXT,), _policy_now, _write_policy, THE_POLICY),
    "PriceList": Written(("currency", "prices"), _prices_now, _write_prices),
    "NoticeRule": Written(
        ("user", "kind", "queue", "timesUsual"), _notice_rule_now, _write_notice_rule
    ),
    "ChangeSet": Written(("description", "author", "items"), _change_set_now, _write_change_set),
    "ChangePlan": Written(_PLAN_FIELDS, _plan_now, _write_plan),
}
