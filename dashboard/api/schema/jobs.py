"""Jobs, podgroups and pods, and why they wait."""

from __future__ import annotations

from functools import partial

from rest_framework import serializers as s

from dashboard.api.schema.cluster import Empty
from dashboard.api.schema.parts import (
    amounts,
    choice,
    given_amounts,
    manifest_shape,
    maybe_moment,
    moment,
    object_shape,
    shape,
    text,
)
from scheduler.domain.no_reclaim import ReclaimCode
from scheduler.domain.reasons import ReasonCode
from scheduler.models.workload import JOB_PHASES, POD_PHASES, PODGROUP_PHASES

REASONS = tuple(code.value for code in ReasonCode)
Container = shape(
    "Container",
    name=s.CharField(required=False),
    image=s.CharField(required=False),
    resources=shape("ContainerResources", requests=given_amounts(), limits=given_amounts())(
        required=False
    ),
)
Toleration = shape(
    "Toleration",
    key=text(required=False),
    operator=text(required=False),
    value=text(required=False),
    effect=text(required=False),
    tolerationSeconds=s.IntegerField(required=False),
)
LifePolicy = shape(
    "LifePolicy",
    event=s.CharField(required=False),
    events=s.ListField(child=s.CharField(), required=False),
    exitCode=s.IntegerField(required=False),
    action=s.CharField(),
)
GivenTask = shape(
    "Task",
    name=s.CharField(required=False),
    replicas=s.IntegerField(required=False, min_value=0, max_value=100_000),
    minAvailable=s.IntegerField(required=False, min_value=0),
    maxRetry=s.IntegerField(
        required=False, min_value=-1, help_text="-1: without a limit of its own"
    ),
    template=s.DictField(required=False, help_text="a Kubernetes pod template"),
    policies=LifePolicy(many=True, required=False),
    dependsOn=s.DictField(required=False),
)
JobSpec = shape(
    "JobSpec",
    queue=s.CharField(required=False),
    minAvailable=s.IntegerField(required=False, min_value=0),
    maxRetry=s.IntegerField(required=False, min_value=0),
    minSuccess=s.IntegerField(required=False, min_value=1),
    ttlSecondsAfterFinished=s.IntegerField(required=False, min_value=0),
    priorityClassName=s.CharField(required=False),
    schedulerName=s.CharField(required=False),
    tasks=GivenTask(many=True),
    policies=LifePolicy(many=True, required=False),
)
PendingReason = shape(
    "PendingReason",
    code=choice(REASONS),
    message=text(),
    figures=s.DictField(),
    session=s.IntegerField(allow_null=True),
)
ExpectedStart = shape(
    "ExpectedStart",
    earliest=maybe_moment(),
    latest=maybe_moment(),
    madeAt=moment(),
    coverage=s.FloatField(help_text="the part of all starts that shall lie in their range"),
    cases=s.IntegerField(help_text="past forecasts that it rests on"),
    noEstimate=text(help_text="why there is none, in a word"),
    message=text(help_text="the same in a sentence"),
)
_Start = partial(
    ExpectedStart,
    allow_null=True,
    help_text="unset where it does not wait, or nobody has looked ahead yet",
)
JobStatus = shape(
    "JobStatus",
    state=shape(
        "JobState",
        phase=choice(JOB_PHASES),
        reason=text(help_text="RunTimeExceeded where it was ended for the time that it ran"),
        message=text(),
        since=maybe_moment(),
    )(),
    runLimit=shape(
        "RunLimit",
        seconds=s.IntegerField(help_text="how long it may run: the strictest limit on its path"),
        queue=s.CharField(help_text="the queue that says so"),
        endsAt=maybe_moment(),
    )(allow_null=True),
    owner=text(),
    minAvailable=s.IntegerField(),
    pending=s.IntegerField(),
    running=s.IntegerField(),
    succeeded=s.IntegerField(),
    failed=s.IntegerField(),
    terminating=s.IntegerField(),
    unknown=s.IntegerField(),
    retryCount=s.IntegerField(),
    version=s.IntegerField(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
    podgroup=shape(
        "JobGang",
        name=s.CharField(help_text="of its podgroup, as the cluster calls it"),
        phase=choice(PODGROUP_PHASES),
        priority=s.IntegerField(),
        reason=PendingReason(allow_null=True),
    )(allow_null=True),
    expectedStart=_Start(),
)
Job = object_shape("Job", JobSpec(), JobStatus(), namespaced=True)
JobManifest = manifest_shape("Job", JobSpec(), namespaced=True)
JobCommandAnswer = shape(
    "JobCommandAnswer",
    changed=s.BooleanField(),
    message=s.CharField(),
    dryRun=s.BooleanField(),
    command=s.CharField(),
    job=s.CharField(),
    phase=choice(JOB_PHASES),
)
PodGroupSpec = shape(
    "PodGroupSpec",
    queue=s.CharField(required=False),
    minMember=s.IntegerField(required=False, min_value=0),
    minTaskMember=s.DictField(child=s.IntegerField(), required=False),
    priorityClassName=s.CharField(required=False),
    minResources=amounts(required=False),
    networkTopology=s.DictField(required=False),
)
PodGroupStatus = shape(
    "PodGroupStatus",
    phase=choice(PODGROUP_PHASES),
    owner=text(),
    job=shape("OwningJob", namespace=s.CharField(), name=s.CharField())(allow_null=True),
    priority=s.IntegerField(),
    pending=s.IntegerField(),
    running=s.IntegerField(),
    succeeded=s.IntegerField(),
    failed=s.IntegerField(),
    conditions=s.ListField(child=s.DictField()),
    reason=PendingReason(allow_null=True),
    expectedStart=_Start(),
    enqueuedAt=maybe_moment(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
)
PodGroup = object_shape("PodGroup", PodGroupSpec(), PodGroupStatus(), namespaced=True)
PodGroupManifest = manifest_shape("PodGroup", PodGroupSpec(required=False), namespaced=True)
Check = shape(
    "Check",
    name=s.CharField(help_text="what was asked, such as capability, deserved, cluster, node"),
    level=text(help_text="the queue it was asked of; root for the cluster"),
    resource=text(),
    need=s.IntegerField(help_text="in base units, as are all figures of a check"),
    limit=s.IntegerField(),
    used=s.IntegerField(help_text="what pods hold on nodes"),
    promised=s.IntegerField(help_text="room that is kept for pods that wait"),
    admitted=s.IntegerField(help_text="what jobs that were admitted before may still take"),
    leaving=s.IntegerField(help_text="the part of used that may be counted on again"),
    free=s.IntegerField(),
    passed=s.BooleanField(),
    short=s.IntegerField(),
)
_Reclaim = shape(
    "ReclaimExplanation",
    code=choice(ReclaimCode),
    message=s.CharField(help_text="one sentence with figures"),
    figures=s.DictField(help_text="amounts in base units"),
)
_LastEviction = shape(
    "LastEviction",
    at=moment(),
    session=s.IntegerField(),
    pod=text(),
    beneficiary=text(),
    action=s.CharField(),
    rule=text(help_text="the rule that allowed it"),
    why=text(help_text="the rule, its figures and the choice in words"),
)
Explanation = shape(
    "Explanation",
    podgroup=s.CharField(),
    phase=choice(
        dict.fromkeys((*PODGROUP_PHASES, *JOB_PHASES)),
        help_text="the gang's, or the job's when that is stopping or has ended",
    ),
    waiting=s.BooleanField(),
    reason=text(),
    message=s.CharField(),
    figures=s.DictField(),
    checks=Check(many=True),
    session=s.IntegerField(allow_null=True),
    evaluatedAt=maybe_moment(),
    position=s.IntegerField(allow_null=True),
    ahead=s.IntegerField(allow_null=True),
    owner=text(help_text="whom to ask: the owner of its queue, or of the nearest queue above it"),
    reclaim=_Reclaim(allow_null=True, help_text="why it takes no room from other queues"),
    lastEviction=_LastEviction(allow_null=True),
    expectedStart=_Start(),
)
TimeSpent = shape(
    "TimeSpent",
    seconds=s.FloatField(),
    waited=s.BooleanField(),
    waitedFor=text(help_text="the code of the reason why it waited, where a session gave one"),
)
LogEvent = shape(
    "LogEvent",
    pod=text(help_text="whose lines these are, or whom the remark is about"),
    lines=s.ListField(
        child=s.ListField(child=s.CharField()),
        help_text="each with its time and its text, the oldest first",
    ),
    position=text(help_text="where to go on after them, as `from`"),
    leftOut=s.BooleanField(help_text="whether lines before them are missing"),
    message=text(help_text="of the events `remark` and `end`, which have a sentence"),
    reason=text(help_text="of the event `end`: ended, evicted, deleted, away, rights or time"),
)
PodLog = shape(
    "PodLog",
    pod=s.CharField(),
    log=text(help_text="the last lines of what the container has written"),
    cut=s.BooleanField(help_text="whether it is too long, and its end is missing"),
    message=text(help_text="why there is none, in a simulated cluster"),
    containers=shape(
        "ContainerState",
        name=s.CharField(),
        state=choice(("running", "waiting", "terminated")),
        reason=text(help_text="such as ImagePullBackOff or Error"),
        message=text(),
        exitCode=s.IntegerField(allow_null=True),
        restarts=s.IntegerField(),
    )(many=True),
)

Timeline = shape(
    "Timeline",
    podgroup=s.CharField(),
    steps=shape(
        "TimelineStep",
        at=moment(),
        title=s.CharField(),
        detail=text(),
        kind=choice(("life", "command", "eviction", "warning")),
        pods=s.IntegerField(help_text="places gained by it, or lost"),
        beneficiary=text(help_text="for whom pods had to go, where the caller may see it"),
        before=TimeSpent(allow_null=True),
    )(many=True),
    now=TimeSpent(allow_null=True, help_text="since the last step; null when all is over"),
)
PodSpec = shape(
    "PodSpec",
    schedulerName=s.CharField(),
    containers=Container(many=True),
    priority=s.IntegerField(),
    nodeName=s.CharField(required=False),
    nodeSelector=s.DictField(child=text(), required=False),
    affinity=s.DictField(required=False),
    tolerations=Toleration(many=True, required=False),
)
PodStatus = shape(
    "PodStatus",
    phase=choice(POD_PHASES),
    queue=s.CharField(),
    podgroup=s.CharField(),
    task=text(),
    node=text(),
    borrowed=s.BooleanField(),
    disruptionBudgets=s.ListField(child=s.CharField(), help_text="of a real cluster: their names"),
    message=text(),
    exitCode=s.IntegerField(allow_null=True),
    conditions=s.ListField(child=s.DictField(child=text())),
    boundAt=maybe_moment(),
    startedAt=maybe_moment(),
    finishedAt=maybe_moment(),
)
Pod = object_shape("Pod", PodSpec(), PodStatus(), namespaced=True)
GivenPodSpec = shape(
    "GivenPodSpec",
    schedulerName=s.CharField(required=False),
    containers=Container(many=True, required=False),
    nodeSelector=s.DictField(child=text(), required=False),
    priorityClassName=s.CharField(required=False),
)
PodManifest = manifest_shape("Pod", GivenPodSpec(required=False), namespaced=True)
Gone = shape("Gone", message=s.CharField(), dryRun=s.BooleanField())
JobFacets = object_shape(
    "JobFacets",
    Empty(),
    shape(
        "JobFacetsStatus",
        query=text(),
        facets=shape(
            "JobFacet",
            field=s.CharField(),
            values=shape(
                "JobFacetValue",
                value=text(help_text="empty for jobs without one"),
                query=text(help_text="the word of a query that finds them"),
                jobs=s.IntegerField(),
            )(many=True),
        )(many=True),
    )(),
)
JobGroups = object_shape(
    "JobGroups",
    Empty(),
    shape(
        "JobGroupsStatus",
        groupBy=s.CharField(),
        query=text(),
        groups=shape(
            "JobGroup",
            value=text(help_text="what they have in common; empty for jobs without one"),
            title=text(help_text="the same in words"),
            query=text(help_text="the word of a query that finds them"),
            jobs=s.IntegerField(),
            waiting=s.IntegerField(help_text="how many of them wait"),
            pods=s.IntegerField(help_text="how many pods their gangs need to start"),
            request=amounts(help_text="what their gangs need to start"),
            oldestWaitSince=maybe_moment(),
        )(many=True),
    )(),
)
