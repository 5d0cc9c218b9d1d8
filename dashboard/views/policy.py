"""/policy/: the scheduling policy: read it, check it while editing, replace it, go back."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.forms.typed import whole_number
from dashboard.http.access import access, page
from dashboard.present.differences import line_differences
from dashboard.present.terminal import copies_of_manifest
from dashboard.views.common import actor, next_url
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Permission
from scheduler.domain.three_way import merge_lines
from scheduler.models import ClusterState, PolicyVersion
from scheduler.scenarios.policies import PolicyReading
from scheduler.services.files.versions import Stale
from scheduler.services.sessions.policies import (
    DEFAULT_VERSION,
    check_policy,
    notices_on,
    policy_text,
    policy_to_go_back_to,
    policy_version,
    replace_policy,
)
from scheduler.services.sessions.policy_effects import effect_of
from scheduler.services.sessions.presets import (
    all_presets,
    preset_in_force,
    preset_text,
    preset_with_other_times_in_force,
    setting_values,
)

Context = dict[str, Any]
_HISTORY = 50


@require_http_methods(["GET", "HEAD", "POST"])
@page
def policy(request: HttpRequest) -> HttpResponse:
    access(request).require_anywhere(Permission.VIEW, "see the policy")
    state = ClusterState.objects.select_related("policy").get(pk=1)
    if request.method == "POST":
        return _posted(request, state)
    return render(request, "sessions/policy.html", _context(request, state, policy_text(state)))


def _context(request: HttpRequest, state: ClusterState, text: str) -> Context:
    return {
        "text": text,
        "rows": min(40, max(14, text.count("\n") + 3)),
        "current": state.policy,
        "version": state.policy_id or DEFAULT_VERSION,
        "history": _history(state),
        "may_edit": access(request).is_cluster_admin,
        "back_to": policy_to_go_back_to(state),
        "preset": preset_in_force(state),
        "preset_with_other_times": preset_with_other_times_in_force(state),
        "chosen": request.POST.get("preset") or _nearest_preset(state),
        "presets": all_presets(state),
        "settings": _settings(state),
        "copies": copies_of_manifest(request, text, ["policy", "set", "-f", "-"], "policy/", "PUT"),
    }


def _nearest_preset(state: ClusterState) -> str:
    """The one in force, be it with other times; empty if there is none."""
    return preset_in_force(state) or preset_with_other_times_in_force(state)


def _settings(state: ClusterState) -> list[Context]:
    """What the settings of the presets mean, with their values here and there."""
    settings: list[Context] = []
    for values in setting_values(state):
        of_presets = []
        for name, value in values.of_presets.items():
            of_presets.append((name, _value_text(value)))
        settings.append(
            {
                "setting": values.setting,
                "in_force": _value_text(values.in_force),
                "of_presets": of_presets,
            }
        )
    return settings


def _value_text(value: object) -> str:
    """As a policy writes it; a dash where the policy has no such action or plugin."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _history(state: ClusterState) -> list[Context]:
    """The newest first, each with the number of lines that it changed; at the end the built-in."""
    built_in = policy_version(DEFAULT_VERSION)
    versions = [
        *PolicyVersion.objects.order_by("-pk")[: _HISTORY + 1],
        *([built_in] if built_in else []),
    ]
    entries: list[Context] = []
    for version, before in list(pairwise(versions))[:_HISTORY]:
        entries.append(
            {
                "row": version,
                "is_current": version.pk == state.policy_id,
                **_counts(before.text, version.text),
            }
        )
    return entries


def _counts(before: str, after: str) -> Context:
    lines = line_differences(before, after)
    return {
        "added": sum(line.kind == "added" for line in lines),
        "removed": sum(line.kind == "removed" for line in lines),
    }


def _posted(request: HttpRequest, state: ClusterState) -> HttpResponse:
    access(request).require_cluster(Permission.ADMINISTER, "replace the policy")
    try:
        text = _posted_text(request)
    except Rejected as refusal:
        messages.error(request, refusal.violations[0].message)
        return redirect("policy")
    applies = request.POST.get("do") in ("save", "preset")
    context = _context(request, state, text) | {
        "checked": True,
        "reason": _posted_reason(request),
    }
    try:
        reading = check_policy(text)
        if applies and _is_overtaken(request, state):
            return _put_together(request, state, text)
        if _is_settled(request, state, text):
            return _apply(request, text)
        context |= _prospect(reading, state, text) | {"asks": applies}
    except Rejected as refusal:
        problems = []
        for item in refusal.violations:
            problems.append({"place": item.field, "message": item.message})
        context |= {"problems": problems}
    except Stale:  # between the look above and the write
        return _put_together(request, ClusterState.objects.select_related("policy").get(pk=1), text)
    return render(request, "sessions/policy.html", context)


def _posted_text(request: HttpRequest) -> str:
    """What is in the editor, or the preset that was chosen. Raises `Rejected`."""
    if request.POST.get("do") == "preset":
        return preset_text(request.POST.get("preset", ""))
    return request.POST.get("text", "").replace("\r\n", "\n")


def _posted_reason(request: HttpRequest) -> str:
    reason = request.POST.get("reason", "")
    if request.POST.get("do") == "preset" and not reason:
        return f"preset {request.POST.get('preset', '')}"
    return reason


def _is_settled(request: HttpRequest, state: ClusterState, text: str) -> bool:
    """Nothing is left to ask: it is in force already, or the reader has seen what it does."""
    if request.POST.get("do") != "save":
        return False
    return text == policy_text(state) or request.POST.get("confirmed") == _digest(text)


def _is_overtaken(request: HttpRequest, state: ClusterState) -> bool:
    version = whole_number(request.POST.get("version", ""))
    return version is not None and version != (state.policy_id or DEFAULT_VERSION)


def _put_together(request: HttpRequest, state: ClusterState, text: str) -> HttpResponse:
    """Somebody applied another policy meanwhile.

    Where both changed different lines, the editor now has both changes.
    """
    opened = policy_version(whole_number(request.POST.get("version", "")) or DEFAULT_VERSION)
    current = policy_text(state)
    both = merge_lines(opened.text, text, current) if opened else None
    context = _context(request, state, text if both is None else both)
    context |= {
        "reason": request.POST.get("reason", ""),
        "overtaken_by": state.policy.author if state.policy else "",
        "is_put_together": both is not None,
        "their_lines": line_differences(opened.text if opened else text, current),
    }
    return render(request, "sessions/policy.html", context, status=412)


def _digest(text: str) -> str:
    """Says which text the reader was shown the effects of: another one is asked about again."""
    return sha256(text.encode()).hexdigest()[:16]


def _prospect(reading: PolicyReading, state: ClusterState, text: str) -> Context:
    """Before it is applied: what it leaves out, what has no effect, what the next session does."""
    lines = line_differences(policy_text(state), text)
    return {
        "notices": notices_on(reading),
        "lines": lines,
        "effect": effect_of(reading.policy, state) if lines else None,
        "confirmed": _digest(text),
    }


def _apply(request: HttpRequest, text: str) -> HttpResponse:
    expected = whole_number(request.POST.get("version", ""))
    saved = replace_policy(
        text,
        by=actor(request),
        reason=request.POST.get("reason", ""),
        expected_version=expected,
    )
    if saved.changed:
        messages.success(
            request, f"Policy {saved.version.pk} applied. The next session follows it."
        )
    else:
        messages.info(request, "Nothing was changed: this policy is applied already.")
    for notice in saved.notices:
        messages.warning(
            request, f"{notice.field}: {notice.message}" if notice.field else notice.message
        )
    return redirect("policy")


@require_POST
@page
def back(request: HttpRequest) -> HttpResponse:
    """Apply an earlier policy again, in one click: here, or in the notice that nothing starts."""
    access(request).require_cluster(Permission.ADMINISTER, "replace the policy")
    number = whole_number(request.POST.get("to", ""))
    found = policy_version(number) if number is not None else None
    if found is None:
        return render(request, "404.html", {"missing": "There is no such policy."}, status=404)
    name = "the built-in policy" if found.pk == DEFAULT_VERSION else f"policy {found.pk}"
    try:
        expected = whole_number(request.POST.get("version", ""))
        saved = replace_policy(
            found.text,
            by=actor(request),
            reason=f"back to {name}",
            expected_version=expected,
        )
    except Stale as conflict:
        messages.error(request, str(conflict))
        return redirect("policy")
    if saved.changed:
        messages.success(request, f"Back to {name}. The next session follows it.")
    else:
        messages.info(request, f"Nothing was changed: {name} is applied already.")
    return redirect(next_url(request, reverse("policy")))


@require_safe
@page
def version(request: HttpRequest, number: int) -> HttpResponse:
    """An earlier policy, against the one in force, with the button that brings it back."""
    access(request).require_anywhere(Permission.VIEW, "see the policy")
    found = policy_version(number)
    if found is None:
        return render(request, "404.html", {"missing": f"There is no policy {number}."}, status=404)
    state = ClusterState.objects.select_related("policy").get(pk=1)
    context = {
        "row": found,
        "is_current": (state.policy_id or DEFAULT_VERSION) == found.pk,
        "is_built_in": found.pk == DEFAULT_VERSION,
        "version": state.policy_id or DEFAULT_VERSION,
        "lines": line_differences(policy_text(state), found.text),
        "may_edit": access(request).is_cluster_admin,
    }
    if context["may_edit"] and context["lines"]:
        context |= _prospect(check_policy(found.text), state, found.text)
    return render(request, "sessions/policy_version.html", context)
