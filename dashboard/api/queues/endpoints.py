"""/api/v1/queues/: the tree of queues, and its commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.filters import QueueFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import Names, Objects, Rows
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.fields import select_fields, wanted_fields
from dashboard.api.framework.formats import CSVRenderer, Documents
from dashboard.api.framework.json_cache import JsonCache
from dashboard.api.framework.visible_rows import visible_by_name
from dashboard.api.objects import queue_export, queue_object, queue_tree
from dashboard.api.queues.answers import (
    close_then_delete_answer,
    command_answer,
    deleted_answer,
    deletion_answer,
)
from dashboard.api.queues.operations import OPERATIONS
from dashboard.api.queues.samples import MOST_SAMPLES, STEPS, last_samples, sample_rows
from dashboard.api.schema.openapi import Operation
from dashboard.api.watch.endpoint import ReadObjects, Stamps, Watched
from dashboard.http.exports import as_csv, streamed
from dashboard.present.charts import HISTORY_COLUMNS
from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import PlannedDeletion, Queue, QueueFigures
from scheduler.models.stamps import stamp_of
from scheduler.selectors.queues.facts import spec_of
from scheduler.selectors.queues.objects import (
    QueueCounts,
    queue_counts,
    queue_values,
    subtree_ids,
    tree_counts,
    values_of_queue,
    values_of_queues,
)
from scheduler.selectors.queues.one_queue import counts_of_queue
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import Saved, create_queue, create_queues, update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.planned_deletion import (
    close_then_delete,
    keep_queue,
)
from scheduler.services.queues.transaction import tree_transaction

_JSON_CACHE = JsonCache()


def _objects(counts: QueueCounts, ids: list[int]) -> dict[int, dict[str, Any]]:
    objects: dict[int, dict[str, Any]] = {}
    for row in values_of_queues(ids):
        objects[row["id"]] = queue_object(row, counts)
    return objects


def _stamps() -> dict[str, Any]:
    """Of the queue and of its figures."""
    return {"spec": stamp_of(Queue), "now": stamp_of(QueueFigures)}


def _stamped(rows: Iterable[Mapping[str, Any]]) -> tuple[Stamps, ReadObjects]:
    counts = queue_counts()
    rows = [*rows]
    counted = counts.all_of(row["id"] for row in rows)
    stamps = {row["id"]: (row["spec"], row["now"], counted[row["id"]]) for row in rows}
    return stamps, partial(_objects, counts)


class Queues(Watched):
    noun = "queue"
    filter_class = QueueFilters
    search_fields = ("name",)
    orderings: ClassVar[Mapping[str, str]] = {
        "name": "name",
        "weight": "weight",
        "priority": "priority",
        "state": "state",
        "created": "created_at",
    }
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "open": {"post": "open"},
        "close": {"post": "close"},
        "suspend": {"post": "suspend"},
        "resume": {"post": "resume"},
        "children": {"get": "children"},
        "tree": {"get": "tree"},
        "history": {"get": "history"},
        "export": {"get": "export"},
        "deletion": {"get": "deletion", "delete": "keep"},
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(
            ("list", "retrieve", "children", "tree", "history", "export", "deletion"),
            permissions.signed_in,
        ),
        **dict.fromkeys(("create", "destroy", "keep"), permissions.ADMIN),
        **dict.fromkeys(
            ("update", "partial_update", "open", "close", "suspend", "resume"), permissions.OPERATE
        ),
    }
    operations: ClassVar[Mapping[str, Operation]] = OPERATIONS

    def get_renderers(self) -> list[Any]:
        if self.action_name == "history":
            return [*super().get_renderers(), CSVRenderer()]
        return super().get_renderers()

    @property
    def known_parameters(self) -> frozenset[str]:
        extra = {
            "destroy": {"cascade", "close_first", "shown"},
            "tree": {"flat"},
            "history": {"step", "limit"},
            "children": {"cursor", "page_size", "ordering"},
        }
        return super().known_parameters | extra.get(self.action_name, set())

    def visible_rows(self) -> QuerySet[Any]:
        return queue_values(self._in_sight())

    def _in_sight(self) -> QuerySet[Queue]:
        return visible_by_name(Queue.objects.all(), self.access, "name")

    def page(self, request: Request) -> HttpResponseBase:
        if self.wants_plain_json:
            return self.standing_page(self._cached_list)
        return self.paged_response(queue_values(self.filter_rows(self._in_sight())))

    def _cached_list(self) -> Response:
        found = self.filter_rows(self._in_sight())
        pages, rows = self.stamped_page(found, "figures__session", **_stamps())
        stamps, read = _stamped(rows)
        return Response(pages.json_page_of(_JSON_CACHE.texts_of(stamps, read)))

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        found = self.filter_rows(self._in_sight()).annotate(**_stamps())
        rows = found.values("id", "figures__session", *_stamps())
        return _stamped(rows.order_by("id")[:most])

    def as_objects(self, rows: Rows) -> Objects:
        counts = queue_counts()
        return [queue_object(row, counts) for row in rows]

    def _object(self, name: str) -> tuple[dict[str, Any], int]:
        row = values_of_queue(name)
        if row is None:
            raise Queue.DoesNotExist(f"There is no queue {name}.")
        return queue_object(row, counts_of_queue(row["id"])), row["resource_version"]

    def row_or_404(self, **where: str) -> dict[str, Any]:
        """As others have it, in one statement that the database knows already."""
        name = (where or self.kwargs)["name"]
        seen = self.access.visible
        row = None
        if seen is None or name in seen:
            row = values_of_queue(name)
        if row is None:
            raise self.nothing_found(**where)
        return row

    def retrieve(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        row = self.row_or_404()
        return self.response_with(
            queue_object(row, counts_of_queue(row["id"])), version=row["resource_version"]
        )

    def create(self, request: Request) -> Response:
        items = self.items_of_list()
        if items is None:
            return self._create(request.data)
        return self.list_response(self._create_all(items))

    def _create(self, manifest: Any) -> Response:
        with tree_transaction(dry_run=self.dry_run):
            made = create_queue(manifest, by=self.actor)
            row = values_of_queue(made.queue.name)
            counts = counts_of_queue(made.queue.pk)
        return self._made(made, row, counts)

    def _create_all(self, manifests: Rows) -> Iterator[Response | Exception]:
        """Each as it is when all of them are done."""
        with tree_transaction(dry_run=self.dry_run):
            results = create_queues(manifests, by=self.actor)
            counts = queue_counts()
            names = []
            for result in results:
                if isinstance(result, Saved):
                    names.append(result.queue.name)
            rows = {row["name"]: row for row in queue_values(Queue.objects.filter(name__in=names))}
        for result in results:
            if isinstance(result, Saved):
                yield self._made(result, rows.get(result.queue.name), counts)
            else:
                yield result

    def _made(self, made: Saved, row: dict[str, Any] | None, counts: QueueCounts) -> Response:
        """Without a row it was sent to a real cluster, and the mirror does not have it yet."""
        if row is None:
            body = queue_manifest(spec_of(made.queue))
            version = made.queue.resource_version
        else:
            body = queue_object(row, counts)
            version = row["resource_version"]
        return self.saved_response(
            body,
            made.notices,
            created=True,
            version=version,
            location=f"/api/v1/queues/{made.queue.name}/",
        )

    def update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=False)

    def partial_update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=True)

    def _update(self, name: str, merge: bool) -> Response:
        self.row_or_404()
        with tree_transaction(dry_run=self.dry_run):
            made = update_queue(
                name,
                self.request.data,
                by=self.actor,
                merge=merge,
                expected_version=self.expected_version,
            )
            body, version = self._object(name)
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def destroy(self, request: Request, name: str) -> Response:
        self.row_or_404()
        if self.boolean_parameter("close_first"):
            return self._close_then_delete(name)
        gone = delete_queue(
            name,
            cascade=self.boolean_parameter("cascade"),
            by=self.actor,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
            shown=self._shown,
        )
        return self.response_with(deleted_answer(gone, self.dry_run))

    @property
    def _shown(self) -> Names | None:
        given = self.request.query_params.get("shown")
        if given is None:
            return None
        return given.split(",")

    def _close_then_delete(self, name: str) -> Response:
        outcome = close_then_delete(
            name,
            shown=self._shown,
            cascade=self.boolean_parameter("cascade"),
            by=self.actor,
            reason=self.stated_reason,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
        )
        status = 202
        if outcome.is_gone or self.dry_run:
            status = 200
        return self.response_with(close_then_delete_answer(outcome, self.dry_run), status)

    def deletion(self, request: Request, name: str) -> Response:
        self.row_or_404()
        planned = PlannedDeletion.objects.filter(queue__name=name).first()
        return self.response_with(deletion_answer(name, planned))

    def keep(self, request: Request, name: str) -> Response:
        self.row_or_404()
        kept = keep_queue(
            name,
            by=self.actor,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
        )
        if kept:
            message = f"{name} is kept: it will not be deleted."
        else:
            message = f"Nobody was going to delete {name}."
        body = {"changed": kept, "message": message, "dryRun": self.dry_run, "queue": name}
        return self.response_with(body)

    def open(self, request: Request, name: str) -> Response:
        return self._command(name, QueueCommand.OPEN)

    def close(self, request: Request, name: str) -> Response:
        return self._command(name, QueueCommand.CLOSE)

    def suspend(self, request: Request, name: str) -> Response:
        return self._command(name, QueueCommand.SUSPEND)

    def resume(self, request: Request, name: str) -> Response:
        return self._command(name, QueueCommand.RESUME)

    def _command(self, name: str, command: QueueCommand) -> Response:
        self.row_or_404()
        outcome = command_queue(
            name,
            command,
            by=self.actor,
            reason=self.reason,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
        )
        return self.response_with(command_answer(outcome, self.dry_run))

    def children(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        return self.paged_response(self.visible_rows().filter(parent_id=row["id"]))

    def tree(self, request: Request, name: str) -> Response:
        rows, counts = self._subtree(name)
        if self.boolean_parameter("flat"):
            wanted = wanted_fields(self.request)
            objects = [queue_object(row, counts) for row in rows]
            return Response({"results": [select_fields(body, wanted) for body in objects]})
        return Response(queue_tree(rows, counts, name))

    def _subtree(self, name: str) -> tuple[Rows, QueueCounts]:
        """Parents before their children.

        The root of what one may see is the queue itself: all below it may be seen too.
        """
        self.row_or_404()
        counts = tree_counts()
        ids = subtree_ids(name, counts)
        rows = {}
        for row in queue_values(Queue.objects.filter(pk__in=ids)):
            rows[row["id"]] = row
        return [rows[queue_id] for queue_id in ids if queue_id in rows], counts

    def history(self, request: Request, name: str) -> HttpResponseBase:
        self.row_or_404()
        step = request.query_params.get("step", "minute")
        if step not in STEPS:
            words = f"step is “{step[:20]}”; it must be one of {', '.join(STEPS)}."
            raise bad_parameter("step", words)
        results = last_samples(name, STEPS[step], self._limit())
        if self.answer_format == "csv":
            lines = as_csv(sample_rows(results), HISTORY_COLUMNS)
            return streamed(request._request, lines, "text/csv", f"{name}-{step}.csv")
        return self.response_with({"queue": name, "seconds": STEPS[step], "results": results})

    def _limit(self) -> int:
        text = self.request.query_params.get("limit", "1000")
        is_number = text.isascii() and text.isdigit() and len(text) < 6
        if not is_number or not 1 <= int(text) <= MOST_SAMPLES:
            raise bad_parameter("limit", f"limit must be a number from 1 to {MOST_SAMPLES}.")
        return int(text)

    def export(self, request: Request, name: str) -> Response:
        rows, _ = self._subtree(name)
        documents = [queue_export(row) for row in rows]
        if self.answer_format == "yaml":
            return Response(Documents(documents))
        return Response({"apiVersion": "v1", "kind": "List", "items": documents})
