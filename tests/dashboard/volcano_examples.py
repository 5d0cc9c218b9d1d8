"""The shapes of Volcano's example jobs (its folder `example/`): the fields that they use, not their
texts. By the file's name.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]
BATCH = "batch.volcano.sh/v1alpha1"
EVICTED = {"event": "PodEvicted", "action": "RestartJob"}
COMPLETES = {"event": "TaskCompleted", "action": "CompleteJob"}
SECRET = {"imagePullSecrets": [{"name": "default-secret"}]}


def container(name: str, resources: Fields | None = None, **more: Any) -> Fields:
    asked = {} if resources is None else {"resources": resources}
    return {"image": "example", "imagePullPolicy": "IfNotPresent", "name": name, **asked, **more}


def task(
    name: str,
    replicas: int,
    *containers: Fields,
    restart: str = "OnFailure",
    metadata: Fields | None = None,
    **more: Any,
) -> Fields:
    pod = more.pop("pod", {})
    spec = {
        "containers": list(containers) or [container("nginx", {"requests": {"cpu": "1"}})],
        "restartPolicy": restart,
        **pod,
    }
    template = {"spec": spec} if metadata is None else {"metadata": metadata, "spec": spec}
    return {"replicas": replicas, "name": name, "template": template, **more}


def job(
    name: str,
    least: int,
    *tasks: Fields,
    version: str = BATCH,
    metadata: Fields | None = None,
    **spec: Any,
) -> Fields:
    whole = {"minAvailable": least, "schedulerName": "volcano", **spec, "tasks": list(tasks)}
    return {
        "apiVersion": version,
        "kind": "Job",
        "metadata": {"name": name, **(metadata or {})},
        "spec": whole,
    }


def plugins(*names: str, **options: list[str]) -> Fields:
    return {"plugins": {**{name: [] for name in names}, **options}}


SSHD = {
    "command": ["/bin/sh", "-c", "mkdir -p /var/run/sshd;\n/usr/sbin/sshd -D;\n"],
    "workingDir": "/home",
}
PORT = {"ports": [{"containerPort": 22, "name": "mpijob-port"}]}
MASTER = container("mpimaster", **SSHD, **PORT)
WORKER = container("mpiworker", **SSHD, **PORT)
FROM_FIELD = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
PADDLE = {
    "limits": {"cpu": 10, "memory": "30Gi", "ephemeral-storage": "10Gi"},
    "requests": {"cpu": 1, "memory": "100M", "ephemeral-storage": "1Gi"},
}
DATA = {"volumes": [{"hostPath": {"path": "/home/work/", "type": ""}, "name": "seqdata"}], **SECRET}
MOUNTS = {"volumeMounts": [{"mountPath": "/mnt/seqdata", "name": "seqdata"}]}
ENV = {
    "env": [
        {"name": "GLOG_v", "value": "0"},
        {"name": "TOPOLOGY"},
        {"name": "POD_IP", **FROM_FIELD},
    ]
}
LINUX = {"pod": {"nodeSelector": {"kubernetes.io/os": "linux"}}}
SMALL = {"requests": {"cpu": "100m"}}
HALF = {"requests": {"cpu": "0.5"}}
MXNET = container(
    "mxnet",
    args=["--kv-store=dist_sync"],
    env=[{"name": "DMLC_ROLE", "value": "worker"}],
)
TENSORFLOW = container(
    "tensorflow",
    {},
    command=["sh", "-c", "python x.py"],
    ports=[{"containerPort": 2222, "name": "tfjob-port"}],
)

ACCEPTED: dict[str, Fields] = {
    "job": job(
        "test-job",
        3,
        task("default-nginx", 6, metadata={"name": "web"}),
        policies=[EVICTED],
        **plugins("ssh", "env", "svc"),
        maxRetry=5,
        queue="default",
        volumes=[
            {"mountPath": "/myinput"},
            {"mountPath": "/myoutput", "volumeClaimName": "testvolumeclaimname"},
        ],
    ),
    "job-plugin": job(
        "test-job-plugin",
        3,
        task("default-nginx", 3, metadata={"name": "web"}),
        policies=[EVICTED],
        **plugins(
            "env",
            ssh=["--ssh-key-file-path=/home/user/.ssh"],
            svc=["--publish-not-ready-addresses=false"],
        ),
        maxRetry=5,
        queue="default",
    ),
    "hierarchical-jobs/jobs (each)": job(
        "eng-prod-job",
        1,
        task(
            "default-nginx",
            6,
            container("nginx", HALF),
            metadata={"name": "web"},
            pod={"schedulerName": "volcano"},
        ),
        policies=[EVICTED],
        **plugins("ssh", "env", "svc"),
        maxRetry=5,
    ),
    "integrations/mpi": job(
        "lm-mpi-job",
        3,
        task("mpimaster", 1, MASTER, policies=[COMPLETES]),
        task("mpiworker", 2, WORKER),
        **plugins("ssh", "svc"),
    ),
    "task-start-dependency/mpi": job(
        "lm-mpi-job",
        3,
        task("mpimaster", 1, MASTER, policies=[COMPLETES], dependsOn={"name": ["mpiworker"]}),
        task("mpiworker", 10, WORKER),
        **plugins("ssh", "svc"),
    ),
    "task-start-dependency/job": job(
        "job",
        1,
        task("job-nginx1", 1, container("nginx", SMALL), metadata={"name": "nginx1"}, **LINUX),
        task(
            "job-nginx2",
            5,
            container("nginx", SMALL),
            dependsOn={"name": ["job-nginx1"]},
            **LINUX,
        ),
        task(
            "job-nginx3",
            5,
            container("nginx", SMALL),
            dependsOn={"name": ["job-nginx2"]},
            **LINUX,
        ),
        queue="default",
    ),
    "MindSpore-example/cpu": job(
        "mindspore-cpu",
        1,
        task("pod", 8, container("mindspore", {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})),
        policies=[EVICTED],
        **plugins("ssh", "env", "svc"),
        maxRetry=5,
        queue="default",
    ),
    "MindSpore-example/gpu": job(
        "mindspore-gpu",
        3,
        task("mpimaster", 1, MASTER),
        task("mpiworker", 2, container("mpiworker", {"limits": {"nvidia.com/gpu": "1"}}, **SSHD)),
        **plugins("ssh", "svc"),
    ),
    "integrations/mxnet": job(
        "mxnet-job",
        5,
        task("worker", 2, MXNET, pod=SECRET),
        task("server", 2, MXNET, pod=SECRET),
        task("scheduler", 1, MXNET, pod=SECRET),
        policies=[EVICTED, {"event": "PodFailed", "action": "RestartJob"}],
        **plugins("svc"),
    ),
    "integrations/paddlepaddle": job(
        "ctr-volcano",
        4,
        task(
            "pserver",
            2,
            container("pserver", PADDLE, **MOUNTS, **ENV),
            metadata={"labels": {"paddle-job-pserver": "fluid-ctr"}},
            pod=DATA,
        ),
        task(
            "trainer",
            2,
            container("trainer", PADDLE, **MOUNTS, **ENV),
            metadata={"labels": {"paddle-job": "fluid-ctr"}},
            pod=DATA,
            policies=[COMPLETES],
        ),
        policies=[EVICTED, {"event": "PodFailed", "action": "RestartJob"}],
    ),
    "integrations/ray": job(
        "ray-cluster-job",
        3,
        task("head", 1, container("head", {})),
        task("worker", 2, container("worker", {})),
        **plugins("ray"),
        policies=[EVICTED],
        queue="default",
    ),
    "integrations/tensorflow": job(
        "tensorflow-dist-mnist",
        3,
        task("ps", 1, TENSORFLOW, restart="Never"),
        task("worker", 2, TENSORFLOW, restart="Never", policies=[COMPLETES]),
        **plugins("env", "svc"),
        policies=[EVICTED],
        queue="default",
    ),
    "tensorflow-benchmark": job(
        "tensorflow-benchmark",
        5,
        task("ps", 2, TENSORFLOW, pod=SECRET),
        task("worker", 3, TENSORFLOW, pod=SECRET, policies=[COMPLETES]),
        **{**plugins("env", "svc"), "schedulerName": "kube-batch"},
        policies=[EVICTED],
    ),
    "kubecon-2019-china/horovod": job(
        "lm-horovod-job",
        4,
        task(
            "master",
            1,
            container(
                "master",
                {
                    "requests": {"cpu": "500m", "memory": "1024Mi"},
                    "limits": {"cpu": "500m", "memory": "1024Mi"},
                },
            ),
            pod=SECRET,
            policies=[COMPLETES],
        ),
        task(
            "worker",
            3,
            container("worker", {"requests": {"cpu": "1000m"}, "limits": {"cpu": "1000m"}}),
            pod=SECRET,
        ),
        metadata={"labels": {"volcano.sh/job-type": "Horovod"}},
        **plugins("ssh", "svc"),
        policies=[EVICTED],
    ),
    "ringsconfigmap/labels": job(
        "test-custom-labels-data-job",
        1,
        task("task-1", 1, container("test", command=["sleep", "3600"]), restart="Never"),
        metadata={"namespace": "default"},
        **plugins(
            ringsconfigmap=["-configmap-labels", '{"team":"ai"}', "-configmap-data", '{"a":"b\\n"}']
        ),
    ),
    "sharding/soft-mode (its job)": job(
        "flexible-batch-job",
        2,
        task("worker", 5, container("worker", {"requests": {"cpu": "100m", "memory": "128Mi"}})),
        metadata={"namespace": "default"},
    ),
}

_ONE = task("task-1", 2)
REFUSED: dict[str, tuple[Fields, str]] = {
    "invalid_jobs/duplicatedPolicyEvent": (
        job(
            "deny",
            1,
            _ONE,
            policies=[
                {"event": "PodFailed", "action": "RestartJob"},
                {"event": "PodFailed", "action": "AbortJob"},
            ],
        ),
        "PodFailed is answered by spec.policies[0] already",
    ),
    "invalid_jobs/duplicatedTaskName": (
        job("deny", 1, _ONE, _ONE),
        "More than one task is called task-1",
    ),
    "invalid_jobs/minAvailable": (
        job("deny", 5, _ONE),
        "minAvailable 5 of deny is more than the 2 replicas",
    ),
    "cronjob": (
        {
            "apiVersion": BATCH,
            "kind": "CronJob",
            "metadata": {"name": "cron"},
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {}}},
        },
        "CronJob is not supported",
    ),
    "jobflow/JobFlow": (
        {
            "apiVersion": "flow.volcano.sh/v1alpha1",
            "kind": "JobFlow",
            "metadata": {"name": "flow"},
            "spec": {"flows": [{"name": "a"}]},
        },
        "JobFlow is not supported",
    ),
    "jobflow/JobTemplate": (
        {**job("a", 1, _ONE), "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"},
        "JobTemplate is not supported",
    ),
    "integrations/argo": (
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": "step-"},
            "spec": {"templates": []},
        },
        "Workflow is not supported",
    ),
    "kubecon-2019-china/gang": (
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "nginx"},
            "spec": {"replicas": 4, "template": {}},
        },
        "ReplicaSet is not supported",
    ),
    "dequeue-strategies/jobs (each)": (
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "fifo"},
            "spec": {"parallelism": 1, "completions": 1, "template": {}},
        },
        "apiVersion is batch/v1; it must be batch.volcano.sh/v1alpha1",
    ),
    "the first job.yaml": (
        {
            "apiVersion": "batch.hpw.cloud/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "old"},
            "spec": {"minAvailable": 3, "taskSpecs": [_ONE]},
        },
        "apiVersion is batch.hpw.cloud/v1alpha1; it must be batch.volcano.sh/v1alpha1",
    ),
}

HIERARCHY: dict[str, tuple[str, str]] = {
    "root-eng-prod": ("root/eng/prod", "1/2/8"),
    "root-eng-dev": ("root/eng/dev", "1/2/2"),
    "root-sci-prod": ("root/sci/prod", "1/8/8"),
    "root-sci-dev": ("root/sci/dev", "1/8/2"),
}


def hierarchy_queue(name: str) -> Fields:
    path, weights = HIERARCHY[name]
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    metadata = {"name": name, "annotations": annotations}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata,
        "spec": {"weight": 1},
    }
