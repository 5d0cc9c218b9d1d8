"""One request to the fake API server that is no watch, and its answer."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.control_plane.fake.refusals import (
    Refused,
    already_bound,
    expired,
    forbidden_by_budget,
    not_allowed,
    other_uid,
    other_version,
)
from tests.control_plane.fake.resources import Resource, Target, resource_of
from tests.control_plane.fake.store import Object, Store

Answer = tuple[int, Object]
_GRACE_SECONDS = 30
_BUDGETS = resource_of("policy/v1", "poddisruptionbudgets")
_NAMESPACES = resource_of("v1", "namespaces")


class Conversation:
    def __init__(self, store: Store, target: Target, question: dict[str, str]) -> None:
        self._store = store
        self._target = target
        self._question = question
        self._key = (target.resource, target.namespace, target.name)

    def answer(self, method: str, body: Any, content_type: str) -> Answer:
        """The HTTP status and the object. Raises Refused."""
        if method == "POST":
            return self._post(body)
        if method == "PUT":
            return self._replace(body)
        if method == "PATCH":
            return self._patch(body, content_type)
        if method == "DELETE":
            return self._delete(body or {})
        if self._target.name:
            return 200, self._store.get(*self._key)
        return self._list()

    def _list(self) -> Answer:
        resource = self._target.resource
        found, revision = self._store.list(resource, self._target.namespace)
        page, metadata = self._page_of(found, revision)
        kind = f"{resource.kind}List"
        listed = {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata}
        return 200, {**listed, "items": page}

    def _page_of(self, found: list[Object], revision: int) -> tuple[list[Object], Object]:
        """The objects of this page. A list from the cache (resourceVersion=0) has only one."""
        metadata: Object = {"resourceVersion": str(revision)}
        limit = int(self._question.get("limit") or 0)
        start = 0
        if self._question.get("continue"):
            start, revision = _read_continue(self._question["continue"])
            if self._store.has_forgotten(revision):
                raise expired(
                    "The provided continue parameter is too old to display a consistent "
                    "list result."
                )
            metadata["resourceVersion"] = str(revision)
        end = start + limit
        if limit == 0 or end >= len(found) or self._question.get("resourceVersion") == "0":
            return found[start:], metadata
        metadata["continue"] = _write_continue(end, revision)
        metadata["remainingItemCount"] = len(found) - end
        return found[start:end], metadata

    def _post(self, body: Object) -> Answer:
        if self._target.subresource == "binding":
            return self._bind(body)
        if self._target.subresource == "eviction":
            return self._evict(body)
        if self._target.resource.is_namespaced:
            self._store.get(_NAMESPACES, "", self._target.namespace)
        if self._target.resource.has_status and self._target.resource.group.endswith("volcano.sh"):
            body = {field: value for field, value in body.items() if field != "status"}
        return 201, self._store.create(self._target.resource, self._target.namespace, body)

    def _bind(self, body: Object) -> Answer:
        name = self._target.name
        wanted_uid = body["metadata"].get("uid")

        def assign(pod: Object) -> Object:
            if wanted_uid not in (None, pod["metadata"]["uid"]):
                raise other_uid(name, wanted_uid, pod["metadata"]["uid"])
            node = pod["spec"].get("nodeName")
            if node:
                raise already_bound(name, node)
            pod["spec"]["nodeName"] = body["target"]["name"]
            _set_condition(pod, {"type": "PodScheduled", "status": "True"})
            return pod

        self._store.change(*self._key, assign, is_spec_counted=False)
        return 201, _success()

    def _evict(self, body: Object) -> Answer:
        pod = self._store.get(*self._key)
        options = body.get("deleteOptions") or {}
        if pod["spec"].get("nodeName"):
            self._ask_budgets(pod)
        self._remove_pod(pod, options)
        return 201, _success()

    def _ask_budgets(self, pod: Object) -> None:
        budgets, _ = self._store.list(_BUDGETS, self._target.namespace)
        for budget in budgets:
            status = budget.get("status", {})
            if _selects(budget, pod) and not status.get("disruptionsAllowed"):
                raise forbidden_by_budget(
                    budget["metadata"]["name"],
                    status.get("desiredHealthy", 0),
                    status.get("currentHealthy", 0),
                )

    def _replace(self, body: Object) -> Answer:
        return self._change(lambda _: body)

    def _patch(self, body: Any, content_type: str) -> Answer:
        if content_type == "application/merge-patch+json":
            return self._change(lambda before: _merged(before, body))
        if content_type == "application/strategic-merge-patch+json":
            return self._change(lambda before: _merged(before, body, by_type=True))
        if content_type == "application/apply-patch+yaml":
            return self._apply(body)
        raise Refused(415, "UnsupportedMediaType", f"the fake does not know {content_type}")

    def _apply(self, body: Object) -> Answer:
        """By force and to what is there. The fake does not know who owns a field."""
        if self._question.get("force") != "true":
            raise Refused(415, "UnsupportedMediaType", "the fake applies by force only")
        return self._change(lambda before: _merged(before, body))

    def _change(self, how: Callable[[Object], Object]) -> Answer:
        """Of a kind with a status of its own, one path changes the status and the other
        the rest.
        """
        resource = self._target.resource
        is_status = self._target.subresource == "status"

        def changed(before: Object) -> Object:
            after = how(before)
            if is_status:
                kept = {**before, "status": after.get("status", {})}
                kept["metadata"] = {**before["metadata"], **_version_of(after)}
                return kept
            if resource.has_status:
                after = {**after, "status": before.get("status")}
                if after["status"] is None:
                    del after["status"]
            _refuse_moved_pod(resource, before, after)
            return after

        return 200, self._store.change(*self._key, changed)

    def _delete(self, options: Object) -> Answer:
        found = self._store.get(*self._key)
        if self._target.resource.plural == "pods":
            return 200, self._remove_pod(found, options)
        _check_preconditions(found, options)
        self._store.delete(*self._key)
        details = {"name": self._target.name, "kind": self._target.resource.plural}
        if self._target.resource.group:
            details["group"] = self._target.resource.group
        details["uid"] = found["metadata"]["uid"]
        return 200, {**_success(), "details": details}

    def _remove_pod(self, pod: Object, options: Object) -> Object:
        """A pod on a node is only marked: its kubelet ends it. Any other is gone at once."""
        _check_preconditions(pod, options)
        is_bound = bool(pod["spec"].get("nodeName"))
        grace = options.get("gracePeriodSeconds", _GRACE_SECONDS if is_bound else 0)
        if is_bound and "deletionTimestamp" in pod["metadata"] and grace:
            return pod
        marked = self._store.change(*self._key, lambda each: _marked(each, grace))
        if grace == 0:
            self._store.delete(*self._key)
        return marked


def _marked(pod: Object, grace: int) -> Object:
    end = datetime.now(UTC) + timedelta(seconds=grace)
    pod["metadata"]["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["metadata"]["deletionGracePeriodSeconds"] = grace
    return pod


def _merged(before: Any, patch: Any, *, by_type: bool = False) -> Any:
    """A JSON merge patch.

    With `by_type`, conditions are merged by their type, as Kubernetes does.
    """
    if not isinstance(patch, dict):
        return patch
    after = dict(before) if isinstance(before, dict) else {}
    for field, value in patch.items():
        if value is None:
            after.pop(field, None)
        elif by_type and field == "conditions":
            after[field] = _merged_conditions(after.get(field, []), value)
        else:
            after[field] = _merged(after.get(field), value, by_type=by_type)
    return after


def _merged_conditions(before: list[Object], patch: list[Object]) -> list[Object]:
    by_type = {each["type"]: each for each in before}
    for each in patch:
        by_type[each["type"]] = {**by_type.get(each["type"], {}), **each}
    return list(by_type.values())


def _set_condition(pod: Object, condition: Object) -> None:
    status = pod.setdefault("status", {})
    status["conditions"] = _merged_conditions(status.get("conditions", []), [condition])


def _version_of(given: Object) -> Object:
    version = given.get("metadata", {}).get("resourceVersion")
    return {} if version is None else {"resourceVersion": version}


def _refuse_moved_pod(resource: Resource, before: Object, after: Object) -> None:
    if resource.plural != "pods":
        return
    for field in ("nodeName", "schedulerName"):
        if after["spec"].get(field) != before["spec"].get(field):
            raise not_allowed(before["metadata"]["name"])


def _check_preconditions(found: Object, options: Object) -> None:
    wanted = options.get("preconditions") or {}
    metadata = found["metadata"]
    if wanted.get("uid") not in (None, metadata["uid"]):
        raise other_uid(metadata["name"], wanted["uid"], metadata["uid"])
    if wanted.get("resourceVersion") not in (None, metadata["resourceVersion"]):
        raise other_version(metadata["name"], wanted["resourceVersion"])


def _selects(budget: Object, pod: Object) -> bool:
    wanted = budget["spec"].get("selector", {}).get("matchLabels", {})
    return wanted.items() <= pod["metadata"].get("labels", {}).items()


def _success() -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _write_continue(start: int, revision: int) -> str:
    return urlsafe_b64encode(json.dumps([start, revision]).encode()).decode()


def _read_continue(token: str) -> tuple[int, int]:
    try:
        start, revision = json.loads(urlsafe_b64decode(token))
    except ValueError as error:
        raise Refused(400, "BadRequest", f"invalid continue token: {error}") from error
    return start, revision
