"""Notices: people are told of what they asked for, in the page, by e-mail, webhook or chat.

Whoever makes something happen says so, in the transaction in which it happens:

    from scheduler.domain.notices import Note, NoticeKind
    from scheduler.services.notices.publish import publish

    publish([
        Note(
            NoticeKind.CALENDAR_BEGAN,
            key=f"calendar-began:{entry.uid}:{begins_at:%Y%m%dT%H%M}",
            title="“Night shift” has begun in team-a",
            message="Until 06:00 the queue has 40 CPUs more.",
            queue="team-a",
            link="/calendar/",
        )
    ])

`key` names the happening: at most 200 characters, and another one for each time that it happens.
The same key is told once, however often it is published. `queue` says who may know of it: only
who may see that queue. `owner` is whose job it is. `users` leaves out everybody else. Those in
`by_default` need no rule. `link` is
needed where the page of the job or the queue is not the right one.

Publishing costs one small query where nobody has a rule for the kind, and one insert more where
somebody has. Nothing is sent there: `write_notices` (`fan_out.py`) fills the inboxes after the
commit, and `deliver_notices` (`delivery.py`) sends what goes elsewhere.
"""
