"""/users/: accounts, groups, and who has which role on which queue, granted or inherited."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Count, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.http.access import access, page
from dashboard.present.terminal import copies_of_call
from dashboard.views.common import actor, next_url, status_for
from scheduler.admission.violations import Rejected, in_words
from scheduler.conf import conf
from scheduler.domain.access import Access, Permission, Role
from scheduler.domain.queues import ROOT
from scheduler.models import ApiToken, Grant, GroupMapping, Queue, SecondFactor
from scheduler.selectors.accounts.access import (
    access_of,
    effective_grants,
    grants_of,
    queue_parents,
)
from scheduler.selectors.accounts.people import groups_in_sight, people_in_sight
from scheduler.services.accounts.grants import grant_role, revoke_grant
from scheduler.services.accounts.second_factors import remove_second_factor
from scheduler.services.accounts.users import delete_group, delete_user, save_group, save_user

Context = dict[str, Any]
PAGE = 100
ROLES = {
    Role.VIEWER: "sees the queue, its jobs and figures",
    Role.SUBMITTER: "and submits jobs, and stops their own",
    Role.ADMIN: "and opens, closes, suspends, edits what is below, and grants roles",
}


def require_any_admin(request: HttpRequest) -> Access:
    """Grants are the business of whoever administers at least one queue."""
    mine = access(request)
    mine.require_anywhere(Permission.ADMINISTER, "manage users and roles")
    return mine


@require_safe
@page
def users(request: HttpRequest) -> HttpResponse:
    mine = require_any_admin(request)
    text = request.GET.get("q", "").strip()
    after = request.GET.get("after", "")
    found = people_in_sight(mine).order_by("username")
    if text:
        found = found.filter(username__icontains=text)
    seen = Prefetch("grants", _grants_in_sight(mine))
    of_them = Prefetch("groups", groups_in_sight(mine))
    rows = list(found.filter(username__gt=after).prefetch_related(of_them, seen)[: PAGE + 1])
    further = ""
    if len(rows) > PAGE:
        further = rows[PAGE - 1].get_username()
    groups = groups_in_sight(mine).annotate(members=Count("user")).prefetch_related(seen)
    context = {
        "users": rows[:PAGE],
        "further": further,
        "groups": groups.order_by("name")[:PAGE],
        "q": text,
        "is_cluster_admin": mine.is_cluster_admin,
        "has_sign_on": conf().sign_on.is_on or GroupMapping.objects.exists(),
    }
    return render(request, "accounts/users.html", context)


def _grants_in_sight(mine: Access) -> QuerySet[Grant]:
    """Roles on queues that the reader may know of."""
    grants = Grant.objects.select_related("queue")
    if mine.visible is None:
        return grants
    return grants.filter(queue__name__in=mine.visible)


@require_safe
@page
def grants(request: HttpRequest) -> HttpResponse:
    """Who may do what on one queue: granted there, or inherited from above."""
    mine = require_any_admin(request)
    name = request.GET.get("queue", ROOT)
    if not mine.may(Permission.VIEW, name) or not Queue.objects.filter(name=name).exists():
        name = next(iter(sorted(administered(mine))), ROOT)
    shown_grants = []
    for grant, inherited in effective_grants(name):
        shown_grants.append({"row": grant, "inherited": inherited})
    context = {
        "queue": name,
        "queues": sorted(administered(mine)),
        "grants": shown_grants,
        "roles": ROLES.items(),
        "may_grant": mine.may(Permission.ADMINISTER, name),
        "people": list(
            people_in_sight(mine)
            .filter(is_active=True)
            .order_by("username")
            .values_list("username", flat=True)[:500]
        ),
        "groups": list(groups_in_sight(mine).order_by("name").values_list("name", flat=True)[:500]),
        "copies": copies_of_call(
            request,
            "grants/",
            {"user": "NAME", "role": next(iter(ROLES)), "queue": name},
        ),
    }
    return render(request, "accounts/grants.html", context)


def administered(mine: Access) -> set[str]:
    names = set(queue_parents())
    if mine.everything:
        return names
    administered: set[str] = set()
    for name in names:
        if mine.may(Permission.ADMINISTER, name):
            administered.add(name)
    return administered


@require_POST
@page
def grant(request: HttpRequest) -> HttpResponse:
    kind, _, name = request.POST.get("who", "").partition(":")
    queue = request.POST.get("queue", ROOT)
    role = request.POST.get("role", "")
    try:
        if kind == "group":
            made = grant_role(group=name, role=role, queue=queue, by=actor(request))
        else:
            made = grant_role(user=name, role=role, queue=queue, by=actor(request))
        messages.success(request, f"{name} is {made.role} on {queue} and below.")
    except Rejected as refusal:
        messages.error(request, in_words(refusal.violations))
    except Queue.DoesNotExist:
        messages.error(request, f"There is no queue {queue}.")
    return redirect(next_url(request, "/users/-/grants/"))


@require_POST
@page
def revoke(request: HttpRequest, number: int) -> HttpResponse:
    found = (
        Grant.objects.select_related("queue", "user", "group", "mapping").filter(pk=number).first()
    )
    if found is None or not access(request).may(Permission.VIEW, found.queue.name):
        messages.info(request, "That grant was revoked already.")
    else:
        try:
            revoke_grant(found, by=actor(request))
            messages.success(
                request,
                f"{found.user or found.group} is no longer {found.role} on {found.queue.name}.",
            )
        except Rejected as refusal:
            messages.error(request, in_words(refusal.violations))
    return redirect(next_url(request, "/users/-/grants/"))


# Accounts and groups


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_user(request: HttpRequest) -> HttpResponse:
    access(request).require_cluster(Permission.ADMINISTER, "manage users")
    problems: list[str] = []
    if request.method == "POST":
        given = {
            "username": request.POST.get("username", "").strip(),
            "password": request.POST.get("password", ""),
            **_fields(request),
        }
        problems = _tried(lambda: save_user(given, by=actor(request)))
        if not problems:
            messages.success(
                request,
                f"Account {given['username']} created. Grant it a role so that it can see queues.",
            )
            return redirect("user", given["username"])
    context: Context = {
        "problems": problems,
        "given": request.POST,
        "groups": Group.objects.order_by("name"),
    }
    context["may_empower"] = access(request).everything
    context["copies"] = copies_of_call(request, "users/", {"username": "NAME"})
    return render(request, "accounts/new_user.html", context, status=status_for(problems))


def _fields(request: HttpRequest) -> Context:
    return {
        "email": request.POST.get("email", "").strip(),
        "isActive": request.POST.get("active") == "1",
        "isClusterAdmin": request.POST.get("cluster_admin") == "1",
        "groups": request.POST.getlist("groups"),
    }


def _tried(act: Callable[[], Any]) -> list[str]:
    try:
        act()
    except Rejected as refusal:
        return [violation.message for violation in refusal.violations]
    except (Group.DoesNotExist, get_user_model().DoesNotExist):
        return ["It is no longer there: somebody else has deleted it."]
    return []


@require_http_methods(["GET", "HEAD", "POST"])
@page
def user(request: HttpRequest, name: str) -> HttpResponse:
    mine = require_any_admin(request)
    found = people_in_sight(mine).filter(username=name).first()
    if found is None:
        return render(request, "404.html", {"missing": f"There is no account {name}."}, status=404)
    problems: list[str] = []
    if request.method == "POST":
        problems = _tried(lambda: _change(request, name))
        if not problems:
            messages.success(request, "Kept.")
            if request.POST.get("do") == "delete":
                return redirect("users")
            return redirect("user", name)
        found.refresh_from_db()
    visible_grants = []
    for grant in grants_of(found):
        if mine.may(Permission.VIEW, grant.queue.name):
            visible_grants.append(grant)
    tokens = ApiToken.objects.none()
    if mine.is_cluster_admin:
        tokens = ApiToken.objects.filter(user=found.pk, revoked_at=None)
    own_groups = set(found.groups.all())
    groups = []
    for group in groups_in_sight(mine).order_by("name"):
        groups.append((group, group in own_groups))
    context = {
        "found": found,
        "problems": problems,
        "grants": visible_grants,
        "groups": groups,
        "is_cluster_admin": mine.is_cluster_admin,
        "may_change": mine.is_cluster_admin and (mine.everything or not found.is_superuser),
        "may_empower": mine.everything,
        "opened": json.dumps(_account_fields(found)),
        "tokens": tokens,
        "second_factor": SecondFactor.objects.filter(user=found.pk).first(),
        "sees_some": access_of(found).may_anywhere(Permission.VIEW),
        "roles": ROLES.items(),
        "queues": sorted(administered(mine)),
    }
    return render(request, "accounts/user.html", context, status=status_for(problems))


@require_POST
@page
def reset_factor(request: HttpRequest, name: str) -> HttpResponse:
    """By a cluster admin, for somebody who lost their phone and their recovery codes."""
    access(request).require_cluster(Permission.ADMINISTER, "manage users")
    found = get_user_model().objects.filter(username=name).first()
    if found is None:
        return render(request, "404.html", {"missing": f"There is no account {name}."}, status=404)
    if found.pk == request.user.pk:
        messages.error(request, "Your own is removed on the account page, with a code.")
    elif remove_second_factor(found, by=actor(request)):
        messages.success(request, f"{name} signs in with the password alone from now on.")
    else:
        messages.info(request, f"{name} has no second factor.")
    return redirect("user", name)


def _change(request: HttpRequest, name: str) -> None:
    if request.POST.get("do") == "delete":
        delete_user(name, by=actor(request))
        return
    changed = _changed_fields(request, name)
    password = request.POST.get("password", "")
    if password:
        changed["password"] = password
    save_user(changed, by=actor(request), username=name)


def _account_fields(found: Any) -> Context:
    """As the form shows them: they go along, so that only what is changed is written."""
    return {
        "email": found.email,
        "isActive": found.is_active,
        "isClusterAdmin": found.is_superuser,
        "groups": sorted(found.groups.values_list("name", flat=True)),
    }


def _changed_fields(request: HttpRequest, name: str) -> Context:
    """What this reader changed of what the form began with; groups that were ticked or unticked."""
    wanted = _fields(request)
    opened = _opened_fields(request)
    if opened is None:
        return wanted
    changed = {}
    for key, value in wanted.items():
        if key != "groups" and value != opened.get(key):
            changed[key] = value
    before = set(opened["groups"])
    after = set(wanted["groups"])
    if before != after:
        joined = after - before
        left = before - after
        now = set(Group.objects.filter(user__username=name).values_list("name", flat=True))
        changed["groups"] = sorted((now | joined) - left)
    return changed


def _opened_fields(request: HttpRequest) -> Context | None:
    try:
        opened = json.loads(request.POST.get("opened", ""))
    except (ValueError, RecursionError):
        return None
    groups = None
    if isinstance(opened, dict):
        groups = opened.get("groups")
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        return None
    return opened  # type: ignore[no-any-return]


@require_POST
@page
def group(request: HttpRequest) -> HttpResponse:
    """Make a group, set its members, or delete it."""
    name = request.POST.get("name", "").strip()
    members = request.POST.get("members", "").replace(",", " ").split()
    acts: dict[str, Callable[[], Any]] = {
        "create": lambda: save_group({"name": name, "members": members}, by=actor(request)),
        "change": lambda: save_group({"members": members}, by=actor(request), name=name),
        "delete": lambda: delete_group(name, by=actor(request)),
    }
    problems = _tried(acts.get(request.POST.get("do", ""), acts["create"]))
    for problem in problems:
        messages.error(request, problem)
    if not problems:
        done = "kept"
        if request.POST.get("do") == "delete":
            done = "deleted"
        messages.success(request, f"The group {name} is {done}.")
    return redirect("users")
