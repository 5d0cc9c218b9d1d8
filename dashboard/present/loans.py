"""Loans between queues in words: "borrowing 18 from team-a (12), archive (6)"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dashboard.http.visibility import Visibility
from dashboard.present.amounts import shown
from scheduler.domain.loans import NOBODY, loans_across
from scheduler.domain.plans import counted
from scheduler.selectors.queues.loans import Ledger

MOST_NAMED = 4
NO_QUEUE = "no queue"
"""Who lends what is above all that the cluster has."""

Parts = list[tuple[str, int]]


def loan_sentence(ledger: Ledger, queue: str, seen: Visibility) -> str:
    """What a queue and all below it lend or borrow; "" for neither."""
    lent = borrowers_of(ledger, queue, seen)
    if lent:
        return f"lending {with_parts(ledger.resource, 'to', lent)}"
    borrowed = lenders_of(ledger, queue, seen)
    if borrowed:
        return f"borrowing {with_parts(ledger.resource, 'from', borrowed)}"
    return ""


def borrowers_of(ledger: Ledger, queue: str, seen: Visibility) -> Parts:
    """Who borrows how much from the queue, the largest first, as far as the reader may know."""
    _, given = loans_across(ledger.loans, queue, ledger.parents)
    return visible_parts(((loan.borrower, loan.amount) for loan in given), seen)


def lenders_of(ledger: Ledger, queue: str, seen: Visibility) -> Parts:
    taken, _ = loans_across(ledger.loans, queue, ledger.parents)
    return visible_parts(((loan.lender, loan.amount) for loan in taken), seen)


def visible_parts(parts: Iterable[tuple[str, int]], seen: Visibility) -> Parts:
    sums: defaultdict[str, int] = defaultdict(int)
    for name, amount in parts:
        sums[name] += amount
    nobodys = sums.pop(NOBODY, 0)
    shares = seen.visible_shares(sorted(sums.items(), key=lambda part: (-part[1], part[0])))
    if nobodys:
        shares.append((NO_QUEUE, nobodys))
    return shares


def with_parts(resource: str, word: str, parts: Parts) -> str:
    """ "18 from team-a (12), archive (6)"; the smallest of many are counted."""
    whole = shown(resource, sum(amount for _, amount in parts))
    if len(parts) == 1:
        return f"{whole} {word} {parts[0][0]}"
    listed = [f"{name} ({shown(resource, amount)})" for name, amount in parts[:MOST_NAMED]]
    rest = parts[MOST_NAMED:]
    if rest:
        amount = sum(amount for _, amount in rest)
        listed.append(f"{counted(len(rest), 'other')} ({shown(resource, amount)})")
    return f"{whole} {word} {', '.join(listed)}"
