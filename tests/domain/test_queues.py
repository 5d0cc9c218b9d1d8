from __future__ import annotations

from scheduler.domain.queues import QueueSpec, QueueTree


def tree(**parents: str) -> QueueTree:
    return QueueTree(
        [
            QueueSpec("root", parent=""),
            *(QueueSpec(name, parent=parent) for name, parent in parents.items()),
        ]
    )


def test_ancestors_go_up_to_root():
    family = tree(a="root", b="a", c="b")

    assert family.ancestors("c") == ["b", "a", "root"]
    assert family.depth("c") == 3
    assert family.depth("root") == 0


def test_descendants_come_parents_first():
    family = tree(a="root", b="a", c="b", d="root")

    assert [queue.name for queue in family.descendants("root")] == ["a", "b", "c", "d"]
    assert not family.is_leaf("a")
    assert family.is_leaf("d")


def test_the_height_is_that_of_the_deepest_queue_below():
    family = tree(a="root", b="a", c="b", d="a", e="root")

    assert [family.height(name) for name in ("root", "a", "b", "c", "e")] == [3, 2, 1, 0, 0]


def test_an_empty_parent_means_root():
    assert tree(a="").parent_of("a") == "root"


def test_a_ring_of_parents_is_found_and_walked_only_once():
    family = tree(a="c", b="a", c="b", d="root")

    assert family.cycles() == [["a", "c", "b"]]
    assert len(family.ancestors("a")) == 2


def test_a_queue_can_be_replaced_without_touching_the_rest():
    family = tree(a="root", b="a").with_queue(QueueSpec("b", parent="root", weight=7))

    assert family["b"].weight == 7
    assert [queue.name for queue in family.children("root")] == ["a", "b"]
