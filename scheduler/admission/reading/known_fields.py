"""The fields that objects have in Kubernetes, in Volcano and here.

A field that is in none of these lists is pointed out, never passed over.

Status fields are known so that an object that was read can be sent back as it came; nobody sets
them.
"""

from __future__ import annotations

from typing import Final

METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "labels",
    "annotations",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)

_COUNTS: Final = ("pending", "running", "succeeded", "failed")
_TIMES: Final = ("startedAt", "finishedAt")
QUEUE_STATUS: Final = (
    "state",
    "closedBy",
    "suspendedBy",
    "pending",
    "inqueue",
    "running",
    "unknown",
    "completed",
    "subtree",
    "jobs",
    "allocated",
    "leaving",
    "promised",
    "asked",
    "lacking",
    "deserved",
    "nominalShare",
    "request",
    "held",
    "realCapability",
    "share",
    "overused",
    "reservation",
    "conditions",
    "warnings",
)
JOB_STATUS: Final = (
    *_COUNTS,
    *_TIMES,
    "state",
    "owner",
    "minAvailable",
    "terminating",
    "unknown",
    "retryCount",
    "version",
    "podgroup",
    "taskStatusCount",
    "runningDuration",
    "controlledResources",
    "conditions",
)
PODGROUP_STATUS: Final = (
    *_COUNTS,
    *_TIMES,
    "phase",
    "owner",
    "job",
    "priority",
    "conditions",
    "reason",
    "enqueuedAt",
)
POD_STATUS: Final = (
    *_TIMES,
    "phase",
    "queue",
    "podgroup",
    "task",
    "node",
    "borrowed",
    "message",
    "exitCode",
    "conditions",
    "boundAt",
    "reason",
    "startTime",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "qosClass",
    "nominatedNodeName",
    "observedGeneration",
    "resize",
    "resourceClaimStatuses",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
)
NODE_STATUS: Final = (
    "allocatable",
    "capacity",
    "conditions",
    "allocated",
    "promised",
    "idle",
    "pods",
    "nodeInfo",
    "addresses",
    "images",
    "daemonEndpoints",
    "phase",
    "config",
    "features",
    "runtimeHandlers",
    "volumesAttached",
    "volumesInUse",
)
CONDITION: Final = (
    "type",
    "status",
    "reason",
    "message",
    "lastHeartbeatTime",
    "lastTransitionTime",
)
NAMESPACE_SPEC: Final = ("finalizers",)
NAMESPACE_STATUS: Final = ("phase", "queue", "conditions")

POLICY: Final = ("event", "events", "action", "exitCode", "timeout")
DEPENDS_ON: Final = ("name", "iteration")
SUB_GROUP: Final = (
    "name",
    "subGroupSize",
    "minSubGroups",
    "networkTopology",
    "labelSelector",
    "matchLabelKeys",
)

TEMPLATE: Final = ("metadata", "spec")
POD_SPEC: Final = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
CONTAINER: Final = (
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
CONTAINER_RESOURCES: Final = ("limits", "requests", "claims")
AFFINITY: Final = ("nodeAffinity", "podAffinity", "podAntiAffinity")
TOLERATION: Final = ("key", "operator", "value", "effect", "tolerationSeconds")
