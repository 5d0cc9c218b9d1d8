"""A collection of objects: found by name, filtered, ordered and shown in pages, made from lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.http.response import HttpResponseBase
from django_filters import FilterSet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSetMixin

from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import Refusal, bad_parameter, not_found
from dashboard.api.framework.fields import select_fields, wanted_fields
from dashboard.api.framework.pagination import CursorPages
from dashboard.api.framework.parameters import LIST_PARAMETERS
from dashboard.api.framework.standing_answers import (
    StandingAnswer,
    StandingAnswers,
    StandingResponse,
)

# Named here, because `list` is an action of every collection.
Rows = list[Any]
Objects = list[dict[str, Any]]
Names = list[str]

Orderings = Mapping[str, str]
"""What `ordering=` may name -> the column."""
Verbs = Mapping[str, Mapping[str, str]]
"""What follows an object's address: path -> {method: action}."""

MOST_ITEMS = 1000
"""Objects in one list that is sent."""
_MOST_SEARCH_WORDS = 8
_MOST_ORDERINGS = 4
_TIMELESS = LIST_PARAMETERS | {"format"}
_OF_FIRST_PAGES = frozenset({"page_size", "ordering", "format"})
_STANDING = StandingAnswers()


class EndpointSet(ViewSetMixin, Endpoint):
    """A collection: `visible_rows` reads what the caller may see, `as_objects` shows it."""

    noun: ClassVar[str] = ""
    """What one of them is called in sentences."""
    lookups: ClassVar[tuple[str, ...]] = ("name",)
    verbs: ClassVar[Verbs] = {}
    filter_class: ClassVar[type[FilterSet] | None] = None
    orderings: ClassVar[Orderings] = {}
    default_ordering: ClassVar[str] = "name"
    search_fields: ClassVar[tuple[str, ...]] = ()

    def visible_rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    def as_objects(self, rows: Rows) -> Objects:
        raise NotImplementedError

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "list":
            known |= LIST_PARAMETERS
            if self.filter_class is not None:
                known |= frozenset(self.filter_class.base_filters)
        return known

    # One object

    def retrieve(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        row = self.row_or_404()
        version = getattr(row, "resource_version", None)
        return self.response_with(self.as_objects([row])[0], version=version)

    def row_or_404(self, **where: str) -> Any:
        """The row that the address names, among those that the caller may see."""
        where = where or {name: self.kwargs[name] for name in self.lookups}
        row = self.visible_rows().filter(**self.lookup_values(where)).first()
        if row is None:
            raise self.nothing_found(**where)
        return row

    def nothing_found(self, **where: str) -> Refusal:
        name = "/".join((where or self.kwargs).values())
        return not_found(f"There is no {self.noun} {name[:120]}.")

    def lookup_values(self, where: Mapping[str, str]) -> dict[str, Any]:
        """The columns that find the row which the address names."""
        return dict(where)

    # Many objects, in pages

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        return self.paged_response(self.filter_rows(self.visible_rows()))

    def paged_response(self, query: QuerySet[Any]) -> Response:
        pages = CursorPages(self.request, self.ordering)
        objects: Any = self.as_objects(pages.read_rows(query))
        objects = select_fields(objects, wanted_fields(self.request))
        return Response(pages.page_of(objects))

    @property
    def wants_plain_json(self) -> bool:
        """Whole objects as JSON: what most programs ask for."""
        wants_json = self.answer_format == "json"
        return wants_json and wanted_fields(self.request) is None

    def standing_page(self, make: Callable[[], Response]) -> HttpResponseBase:
        """The page as it was made before, if nothing was written since; else as it is made now.

        Only whole lists: what a filter finds may depend on the time.
        """
        token: Any = self.request.auth
        state: str = getattr(token, "database_state", "")
        if not state or not self.request.query_params.keys() <= _TIMELESS:
            return make()
        key = (token.pk, self.request.build_absolute_uri())
        answer = _STANDING.find(key, state)
        if answer is None:
            answer = StandingAnswer(state, *make().data.pieces)
            _STANDING.keep(key, answer)
        return StandingResponse(answer)

    def stamped_page(
        self,
        query: QuerySet[Any],
        *joined: str,
        **stamps: Any,
    ) -> tuple[CursorPages, Objects]:
        """The rows of a page with nothing but their keys and stamps.

        `joined` names a column of each other table that a stamp is of.
        """
        pages = CursorPages(self.request, self.ordering)
        columns = {"id", *(name.lstrip("-") for name in pages.ordering)} - {"pk"}
        names = (*sorted(columns), *joined, *stamps)
        if self._is_first_page_of_all:
            everything = query.annotate(**stamps)
            return pages, pages.read_first_rows(self.noun, everything, names)
        rows = query.annotate(**stamps).values(*names)
        return pages, pages.read_rows(rows)

    @property
    def _is_first_page_of_all(self) -> bool:
        """Nothing is looked for, and nothing is hidden from the caller."""
        sees_all = self.access.visible is None and self.access.readable is None
        return sees_all and self.request.query_params.keys() <= _OF_FIRST_PAGES

    @property
    def ordering(self) -> Names:
        asked = self.request.query_params.get("ordering", "") or self.default_ordering
        columns = []
        for name in asked.split(","):
            if name.strip():
                columns.append(self._column(name.strip()))
        return columns[:_MOST_ORDERINGS] or [self._column(self.default_ordering)]

    def _column(self, name: str) -> str:
        plain = name.lstrip("-")
        if plain not in self.orderings:
            known = ", ".join(self.orderings)
            raise bad_parameter(
                "ordering",
                f"This list cannot be ordered by {plain[:40]}.",
                f"one of {known}; - in front reverses the order",
            )
        column = self.orderings[plain]
        if name.startswith("-"):
            return f"-{column}"
        return column

    def filter_rows(self, query: QuerySet[Any]) -> QuerySet[Any]:
        query = self._search(query)
        asked = self.request.query_params
        if self.filter_class is None or not asked.keys() & self.filter_class.base_filters.keys():
            return query
        filters = self.filter_class(asked, queryset=query, request=self.request)
        if not filters.is_valid():
            name, messages = next(iter(filters.errors.items()))
            raise bad_parameter(name, f"{name}: {' '.join(messages)}")
        found: QuerySet[Any] = filters.qs
        return found

    def _search(self, query: QuerySet[Any]) -> QuerySet[Any]:
        words = self.request.query_params.get("search", "").split()
        for word in words[:_MOST_SEARCH_WORDS]:
            query = query.filter(self.search_condition(word))
        return query

    def search_condition(self, word: str) -> Q:
        """The word occurs in one of the columns that are searched."""
        condition = Q()
        for column in self.search_fields:
            condition |= Q(**{f"{column}__icontains": word})
        return condition

    # Lists of objects that are sent

    def create_each(self, make: Callable[[Any], Response]) -> Response:
        """Make the one object that was sent, or each of a list with a result for each."""
        items = self.items_of_list()
        if items is None:
            return make(self.request.data)
        return self.list_response(
            self._try_item(index, item, make) for index, item in enumerate(items)
        )

    def items_of_list(self) -> Rows | None:
        """The objects of the list that was sent; None where one object was sent.

        Raises `Refusal` for too many.
        """
        body = self.request.data
        if not isinstance(body, list):
            return None
        if len(body) > MOST_ITEMS:
            message = f"The list has {len(body)} objects; at most {MOST_ITEMS} are allowed at once."
            raise Refusal(message, problem_type="too-many")
        return body

    def _try_item(
        self,
        index: int,
        item: Any,
        make: Callable[[Any], Response],
    ) -> Response | Exception:
        make_item = partial(make, item)
        try:
            if self.keyed is None:
                return make_item()
            keyed_item = self.keyed.keyed_item(index, item)
            return keyed_item.carry_out_once(partial(self._with_refusals, make_item))
        except Exception as error:
            return error

    def list_response(self, made: Iterable[Response | Exception]) -> Response:
        """The answer to a list: what each object would have been answered alone."""
        results = []
        for index, answer in enumerate(made):
            results.append(self._item_result(index, answer))
        return Response({"results": results})

    def _item_result(self, index: int, answer: Response | Exception) -> dict[str, Any]:
        if isinstance(answer, Exception):
            answer = self.handle_exception(answer)
        result = {"index": index, "status": answer.status_code, "object": None, "problem": None}
        if answer.status_code >= 400:
            result["problem"] = answer.data
        else:
            result["object"] = answer.data
        return result


class ManifestSet(EndpointSet):
    """Objects that are written as manifests: PUT replaces one, PATCH changes some of its fields."""

    def create(self, request: Request) -> Response:
        return self.create_each(self.create_object)

    def update(self, request: Request, **where: str) -> Response:
        self.row_or_404()
        return self.update_object(merge=False, **where)

    def partial_update(self, request: Request, **where: str) -> Response:
        self.row_or_404()
        return self.update_object(merge=True, **where)

    def create_object(self, manifest: Any) -> Response:
        raise NotImplementedError

    def update_object(self, *, merge: bool, **where: str) -> Response:
        raise NotImplementedError
