"""Who borrows from whom, now and over time."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import (
    moment,
    object_shape,
    shape,
    text,
)

_Loan = shape(
    "Loan",
    borrower=s.CharField(),
    lender=s.CharField(help_text="a queue, or what it is that no queue lends"),
    level=text(help_text="the queue where both meet; it lends what it has not assigned"),
    amount=s.CharField(),
    lenderLacks=s.CharField(help_text="what the lender deserves, lacks and has jobs waiting for"),
)
_Borrower = shape(
    "LoanBorrower",
    queue=s.CharField(),
    borrowed=s.CharField(),
    askedBack=s.CharField(help_text="a lender lacks it and could take it back now"),
    open=s.CharField(help_text="its lender could take it back if it asked"),
    protected=s.CharField(help_text="by minimum running times, or because its pods end soon"),
    protectedSeconds=s.IntegerField(help_text="until the last of these pods may go"),
    kept=s.CharField(help_text="what cannot be taken back"),
    keptBecause=text(help_text="why not"),
    message=text(help_text="why not, in words"),
)
_Lender = shape(
    "LoanLender",
    queue=s.CharField(),
    lent=s.CharField(),
    lacks=s.CharField(),
    isUnassigned=s.BooleanField(help_text="it lends what it has not assigned below it"),
)
LoanLedger = object_shape(
    "LoanLedger",
    Empty(),
    shape(
        "LoanLedgerStatus",
        resource=text(),
        borrowed=s.CharField(help_text="the sum of all loans"),
        loans=_Loan(many=True),
        borrowers=_Borrower(many=True),
        lenders=_Lender(many=True),
        starved=_Loan(many=True, help_text="loans of lenders that lack it, the widest gap first"),
    )(),
)
LoanHistory = object_shape(
    "LoanHistory",
    Empty(),
    shape(
        "LoanHistoryStatus",
        window=s.CharField(),
        queue=text(help_text="empty for all queues together"),
        resource=text(),
        points=shape(
            "LoanPoint",
            at=moment(),
            queue=text(),
            resource=text(),
            borrowed=s.CharField(),
            lent=s.CharField(),
            **{
                "from": s.DictField(child=s.CharField(), help_text="by lender"),
                "to": s.DictField(child=s.CharField(), help_text="by borrower"),
            },
        )(many=True),
    )(),
)
