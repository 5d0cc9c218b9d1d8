"""What a gang may take: asked of all queues and victims at once, it is what each alone says."""

from __future__ import annotations

from hypothesis import given, settings

from scheduler.engine import open_session
from scheduler.engine.actions.reclaim_gangs import GangReclamation
from scheduler.engine.eviction.gang_claim import Claim
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import configured, with_actions
from tests.properties.frozen import frozen_clusters

RECLAIM = configured(with_actions(FUMAROLE, "reclaim"), reclaim={"wholeGangs": True})


def claims_in(snapshot):
    session = open_session(snapshot, RECLAIM)
    for gang in session.starving_gangs():
        yield Claim(session, gang)


@settings(max_examples=60, deadline=None)
@given(frozen_clusters())
def test_all_losing_queues_at_once_are_those_that_each_alone_may_lose(snapshot):
    for claim in claims_in(snapshot):
        tree = claim.session.queue_tree
        alone = []
        for queue in range(len(tree)):
            levels = tree.crossed(claim.gang.queue, queue)
            may_lose = claim.session.losing_leaves[queue] and queue != claim.gang.queue
            alone.append(bool(may_lose and within_due(claim, levels)))

        assert claim.losing_queues.tolist() == alone


def within_due(claim, levels):
    quotas = claim.session.quotas
    if quotas is None:
        return True
    usage = claim.session.queue_usage.allocated
    short = claim.short
    return all((usage[row] + claim.wanted <= quotas.deserved[row])[short].all() for row in levels)


@settings(max_examples=60, deadline=None)
@given(frozen_clusters())
def test_all_victims_at_once_are_those_that_may_go_alone(snapshot):
    session = open_session(snapshot, RECLAIM)
    rows = session.starving_rows()
    if not len(rows):
        return
    table = GangReclamation(session, rows).table(sparing=False)
    for gang in session.starving_gangs():
        claim = Claim(session, gang)
        may_go = claim.may_lose_each(table)
        for row in range(len(table)):
            victim = table.victim(row)
            is_other = victim.gang.row != gang.row and claim.losing_queues[victim.gang.queue]
            assert bool(may_go[row]) == (is_other and claim.may_lose([victim]))


def test_the_clusters_have_victims_that_may_go_and_others():
    """Else the two tests above would say nothing."""
    found = set()

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(frozen_clusters())
    def look(snapshot):
        session = open_session(snapshot, RECLAIM)
        rows = session.starving_rows()
        if len(rows):
            table = GangReclamation(session, rows).table(sparing=False)
            for gang in session.starving_gangs():
                found.update(Claim(session, gang).may_lose_each(table).tolist())

    look()
    assert found == {True, False}
