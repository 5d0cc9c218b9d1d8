"""Who used what, what it cost, and who had less than their share."""

from __future__ import annotations

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import (
    maybe_moment,
    moment,
    object_shape,
    shape,
    text,
)

_HOURS = "resource-hours; for bytes Gi-hours"
_UNKNOWN = "null in steps of which nothing is known, which is not 0"
_UsageLine = shape(
    "UsageLine",
    name=text(help_text="of the queue, user, namespace or job (namespace/name)"),
    used=s.FloatField(help_text=_HOURS),
    waited=s.FloatField(help_text="from when pods were made until they got a node"),
    lost=s.FloatField(help_text="what evicted pods had used"),
    deserved=s.FloatField(allow_null=True, help_text="only by queue, like the next three"),
    borrowed=s.FloatField(allow_null=True),
    lent=s.FloatField(allow_null=True),
    idle=s.FloatField(allow_null=True, help_text="deserved, and neither used nor lent"),
    owed=s.FloatField(allow_null=True, help_text="lacked of its deserved while pods asked for it"),
    usedSeconds=s.CharField(help_text="exact: whole resources × seconds, for bytes Ki × seconds"),
    share=s.FloatField(allow_null=True, help_text="of its deserved, or else of all that was used"),
    cost=s.CharField(allow_null=True, help_text="of all resources together, by the price lists"),
    message=text(),
)
UsageReport = object_shape(
    "UsageReport",
    Empty(),
    shape(
        "UsageReportStatus",
        window=text(help_text="empty where days were chosen"),
        **{"from": moment()},
        to=moment(help_text="the end, which is not included"),
        step=s.CharField(),
        by=s.CharField(),
        resource=text(),
        unit=s.CharField(),
        completeUntil=maybe_moment(),
        capacity=s.FloatField(help_text="what the nodes of the whole cluster had"),
        message=s.CharField(help_text="what was used of what the cluster had"),
        currency=text(help_text="of the costs; empty where there are no prices"),
        whole=_UsageLine(),
        rows=_UsageLine(many=True, help_text="the largest first; “others” is the rest of many"),
        steps=s.ListField(child=s.DateTimeField(), help_text="when the steps begin"),
        series=shape(
            "UsageSeries",
            name=text(),
            used=s.ListField(child=s.FloatField(allow_null=True), help_text=_UNKNOWN),
        )(many=True, help_text="the largest, and the others as one"),
    )(),
)
_PriceList = shape(
    "PriceList",
    validFrom=s.DateField(),
    currency=s.CharField(),
    prices=s.DictField(child=s.CharField(), help_text="per resource and hour; bytes per Gi-hour"),
)
PriceLists = object_shape(
    "PriceLists", shape("PriceListsSpec", lists=_PriceList(many=True))(), Empty()
)
GivenPriceList = shape(
    "GivenPriceList",
    validFrom=s.DateField(),
    currency=s.CharField(max_length=16),
    prices=s.DictField(child=s.CharField()),
)
Statement = object_shape(
    "Statement",
    Empty(),
    shape(
        "StatementStatus",
        queue=s.CharField(),
        month=s.CharField(),
        **{"from": moment()},
        to=moment(),
        currency=text(help_text="empty where there are no prices"),
        total=s.CharField(allow_null=True),
        resources=shape(
            "StatementResource",
            queue=s.CharField(),
            month=s.CharField(),
            resource=s.CharField(),
            unit=s.CharField(),
            used=s.FloatField(),
            usedSeconds=s.CharField(),
            price=s.CharField(allow_null=True, help_text="unset where it changed in between"),
            cost=s.CharField(allow_null=True),
            currency=text(),
        )(many=True),
        users=shape("StatementUser", name=text(), cost=s.CharField())(many=True),
    )(),
)
GivenStatement = shape("GivenStatement", queue=s.CharField(), month=s.CharField())
SentStatement = shape(
    "SentStatement", sentTo=s.ListField(child=s.CharField()), dryRun=s.BooleanField()
)
_Waits = shape(
    "WaitsOfGangs",
    name=text(),
    gangs=s.IntegerField(),
    p50Seconds=s.FloatField(allow_null=True),
    p95Seconds=s.FloatField(allow_null=True),
)
Fairness = object_shape(
    "Fairness",
    Empty(),
    shape(
        "FairnessStatus",
        window=text(),
        **{"from": moment()},
        to=moment(),
        step=s.CharField(),
        resource=text(),
        unit=s.CharField(),
        queues=shape(
            "FairnessBalance",
            queue=s.CharField(),
            deserved=s.FloatField(),
            used=s.FloatField(),
            owed=s.FloatField(help_text="below its deserved while it asked for more"),
            borrowed=s.FloatField(),
            balance=s.FloatField(help_text="borrowed − owed; below 0 the others owe it"),
            message=text(),
        )(many=True),
        pairs=shape("StarvedPair", starved=s.CharField(), by=s.CharField(), amount=s.FloatField())(
            many=True
        ),
        waits=shape(
            "FairnessWaits", queue=_Waits(many=True), size=_Waits(many=True), user=_Waits(many=True)
        )(),
        steps=s.ListField(child=s.DateTimeField()),
        room=shape(
            "RoomPart",
            part=s.CharField(),
            hours=s.FloatField(allow_null=True),
            share=s.FloatField(allow_null=True),
            steps=s.ListField(child=s.FloatField(allow_null=True), help_text=_UNKNOWN),
        )(many=True, help_text="the parts add up to all that the cluster had"),
    )(),
)
