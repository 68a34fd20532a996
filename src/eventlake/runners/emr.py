"""Spark on EMR: as a step of a cluster that is there, or on one that is made for a run and ended with it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from eventlake.aws.service import Service
from eventlake.aws.session import AwsOptions
from eventlake.errors import EventLakeError, InvalidSettingsError, JobStatusDeniedError, SubmitDeniedError
from eventlake.runners.emr_states import in_words, is_gone, logs_of, lost, refuse_old, state_of, state_of_step
from eventlake.runners.remote import NOT_STARTED, State, Status
from eventlake.runners.submission import Submission

_IDLE_SECONDS = 3600  # after which EMR ends a cluster that was left behind
_POLICIES = ("AutoTerminationPolicy", "ManagedScalingPolicy")
# What Segment's guide has: the machines of a cluster that may not be asked for its own.
_MACHINE = {
    "InstanceType": "m5.xlarge",
    "Market": "ON_DEMAND",
    "EbsBlockDevices": [{"VolumeSpecification": {"VolumeType": "gp2", "SizeInGB": 64}}],
}
_MACHINES = [
    {**_MACHINE, "InstanceGroupType": role, "RequestedInstanceCount": count}
    for role, count in (("MASTER", 1), ("CORE", 2), ("TASK", 2))
]


class Emr(Service):
    """What is asked of EMR."""

    def __init__(self, options: AwsOptions) -> None:
        super().__init__("emr", options, hint="check emr.cluster_id and that the cluster runs, in this region")

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("describe_cluster", f"look at cluster {cluster_id}", ClusterId=cluster_id)
        cluster: dict[str, Any] = found["Cluster"]
        return cluster

    def model(self, cluster_id: str, bootstrap: Sequence[str] = ()) -> dict[str, Any]:
        """A cluster with its machines, what they are prepared with, and how many there may be; as far as one may know.

        Segment's policy lets nobody ask for more than the cluster itself.
        """
        cluster = self.cluster(cluster_id)
        refuse_old(cluster)
        fleets = cluster.get("InstanceCollectionType") == "INSTANCE_FLEET"
        parts = {
            **({} if bootstrap else {"BootstrapActions": "list_bootstrap_actions"}),
            "ManagedScalingPolicy": "get_managed_scaling_policy",
            **({"InstanceFleets": "list_instance_fleets"} if fleets else {"InstanceGroups": "list_instance_groups"}),
        }
        for key, method in parts.items():
            with suppress(JobStatusDeniedError):
                cluster[key] = self.ask(method, f"look at cluster {cluster_id}", ClusterId=cluster_id).get(key)
        scripts = [action.split() for action in bootstrap]
        given = [{"Name": "eventlake", "ScriptPath": path, "Args": words} for path, *words in scripts]
        return cluster | ({"BootstrapActions": given} if given else {})

    def step_status(self, cluster_id: str, step_id: str, logs: str) -> Status:
        step = self.ask("describe_step", f"look at step {step_id}", ClusterId=cluster_id, StepId=step_id)["Step"]
        status = step["Status"]
        why = status.get("FailureDetails", {})
        where = why.get("LogFile") or (f"{logs}{cluster_id}/steps/{step_id}/" if logs else "")
        return Status(state_of_step(status), f"step {step_id} on {cluster_id} {in_words(status)}", where)


def check_cluster(emr: Emr, cluster_id: str) -> dict[str, Any]:
    """A cluster that takes steps."""
    cluster = emr.cluster(cluster_id)
    if is_gone(cluster["Status"]):
        raise InvalidSettingsError(
            f"cluster {cluster_id} {in_words(cluster['Status'])}",
            fix="start another one and set emr.cluster_id",
        )
    refuse_old(cluster)
    return cluster


class EmrStep:
    """A `Launcher` that adds a step to a cluster."""

    def __init__(self, emr: Emr, cluster_id: str, submission: Submission) -> None:
        self._emr = emr
        self._cluster_id = cluster_id
        self.where = {"emr_cluster_id": cluster_id}
        self._submission = submission
        self._step_id = ""
        self._logs = ""

    def start(self, session: str) -> str:
        self._logs = logs_of(check_cluster(self._emr, self._cluster_id))
        added = self._emr.ask(
            "add_job_flow_steps",
            f"submit to cluster {self._cluster_id}",
            JobFlowId=self._cluster_id,
            Steps=[_step(self._submission, session)],
        )
        self._step_id = added["StepIds"][0]
        return f"step {self._step_id} to cluster {self._cluster_id}"

    def status(self) -> Status:
        if not self._step_id:
            return NOT_STARTED
        status = self._emr.step_status(self._cluster_id, self._step_id, self._logs)
        if status.state is not State.FAILED:
            return status
        return status._replace(problem=self._why_lost())

    def _why_lost(self) -> EventLakeError | None:
        """What a step that failed does not tell: that its cluster is gone."""
        cluster = self._emr.cluster(self._cluster_id)["Status"]
        return lost(self._cluster_id, cluster, self._logs) if is_gone(cluster) else None

    def _has_ended(self) -> bool:
        with suppress(EventLakeError):  # who may not look at it ends it all the same
            return self.status().state in (State.ENDED, State.FAILED)
        return False

    def stop(self) -> None:
        if self._step_id and not self._has_ended():
            self._emr.ask(
                "cancel_steps",
                f"cancel step {self._step_id}",
                ClusterId=self._cluster_id,
                StepIds=[self._step_id],
                StepCancellationOption="TERMINATE_PROCESS",
            )


class TransientCluster:
    """A `Launcher` that starts a cluster like another one for a single step, and ends it."""

    def __init__(
        self, emr: Emr, model_id: str, submission: Submission, tags: dict[str, str], bootstrap: Sequence[str] = ()
    ) -> None:
        self._emr = emr
        self._model_id = model_id
        self._bootstrap = bootstrap
        self._submission = submission
        self._tags = tags
        self._cluster_id = ""
        self.where: dict[str, str] = {}  # nowhere, before there is a cluster
        self._logs = ""

    def start(self, session: str) -> str:
        model = self._emr.model(self._model_id, self._bootstrap)
        wanted = like(model, _step(self._submission, session), self._tags)
        self._logs = logs_of(model)
        try:
            made = self._emr.ask("run_job_flow", "start a cluster", **wanted)
        except SubmitDeniedError:  # each of these policies needs a right of its own, which Segment's does not give
            bare = {key: value for key, value in wanted.items() if key not in _POLICIES}
            made = self._emr.ask("run_job_flow", "start a cluster", **bare)
        self._cluster_id = self.where["emr_cluster_id"] = made["JobFlowId"]
        unknown = (
            "" if "BootstrapActions" in model else "; its bootstrap actions may not be seen: set bootstrap_actions"
        )
        return f"to cluster {self._cluster_id}, which is made for this run like {self._model_id}{unknown}"

    def status(self) -> Status:
        if not self._cluster_id:
            return NOT_STARTED
        status = self._emr.cluster(self._cluster_id)["Status"]  # it has one step, and ends with it
        where = f"{self._logs}{self._cluster_id}/" if self._logs else ""
        problem = lost(self._cluster_id, status, where)
        return Status(state_of(status), f"cluster {self._cluster_id} {in_words(status)}", where, problem)

    def stop(self) -> None:
        if self._cluster_id:
            self._emr.ask("terminate_job_flows", f"end cluster {self._cluster_id}", JobFlowIds=[self._cluster_id])


def _step(submission: Submission, session: str) -> dict[str, Any]:
    return {
        "Name": "eventlake",
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": submission.on_yarn(session)},
    }


# What a new cluster takes over from its model as it is told.
_AS_IT_IS = (
    "ReleaseLabel",
    "ManagedScalingPolicy",
    "Configurations",
    "ServiceRole",
    "AutoScalingRole",
    "SecurityConfiguration",
    "ScaleDownBehavior",
    "EbsRootVolumeSize",
    "CustomAmiId",
    "LogUri",
    "LogEncryptionKmsKeyId",
)
_PLACE_AS_IT_IS = (
    "Ec2KeyName",
    "EmrManagedMasterSecurityGroup",
    "EmrManagedSlaveSecurityGroup",
    "ServiceAccessSecurityGroup",
    "AdditionalMasterSecurityGroups",
    "AdditionalSlaveSecurityGroups",
)


def like(model: dict[str, Any], step: dict[str, Any], tags: dict[str, str]) -> dict[str, Any]:
    """What to ask for to get a cluster like another one, that does one step and ends; tags of the other win over ours.

    It ends by itself when the step does, and EMR ends it if it is idle: also if nobody is left to ask for it.
    """
    tags = tags | {tag["Key"]: tag["Value"] for tag in model.get("Tags") or () if not tag["Key"].startswith("aws:")}
    place = model.get("Ec2InstanceAttributes", {})
    groups = model.get("InstanceGroups") or ([] if model.get("InstanceFleets") else _MACHINES)
    subnets = place.get("RequestedEc2SubnetIds") if model.get("InstanceFleets") else None
    instances = _filled(
        # Managed scaling leaves groups without machines behind.
        InstanceGroups=[_group(one) for one in groups if one["RequestedInstanceCount"]],
        InstanceFleets=[
            _fleet(one)
            for one in model.get("InstanceFleets") or ()
            if one.get("TargetOnDemandCapacity") or one.get("TargetSpotCapacity")
        ],
        KeepJobFlowAliveWhenNoSteps=False,
        TerminationProtected=False,
        Ec2SubnetIds=subnets,
        Ec2SubnetId=None if subnets else place.get("Ec2SubnetId"),
        **{key: place.get(key) for key in _PLACE_AS_IT_IS},
    )
    return _filled(
        Name=f"{model['Name']}: eventlake replay",
        Applications=[{"Name": one["Name"]} for one in model.get("Applications", ())],
        BootstrapActions=[_bootstrap(action) for action in model.get("BootstrapActions") or ()],
        JobFlowRole=place.get("IamInstanceProfile"),
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        VisibleToAllUsers=True,
        AutoTerminationPolicy={"IdleTimeout": _IDLE_SECONDS},
        Steps=[step],
        Instances=instances,
        **{key: model.get(key) for key in _AS_IT_IS},
    )


def _filled(**values: Any) -> dict[str, Any]:
    """Without what is not set: EMR refuses empty values."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def _group(group: dict[str, Any]) -> dict[str, Any]:
    return _filled(
        Name=group.get("Name"),
        Market=group.get("Market"),
        BidPrice=group.get("BidPrice"),
        InstanceRole=group["InstanceGroupType"],
        InstanceType=group["InstanceType"],
        InstanceCount=group["RequestedInstanceCount"],
        Configurations=group.get("Configurations"),
        EbsConfiguration=_disks(group),
    )


def _fleet(fleet: dict[str, Any]) -> dict[str, Any]:
    return _filled(
        Name=fleet.get("Name"),
        InstanceFleetType=fleet["InstanceFleetType"],
        TargetOnDemandCapacity=fleet.get("TargetOnDemandCapacity"),
        TargetSpotCapacity=fleet.get("TargetSpotCapacity"),
        LaunchSpecifications=fleet.get("LaunchSpecifications"),
        InstanceTypeConfigs=[
            _filled(
                InstanceType=kind["InstanceType"],
                WeightedCapacity=kind.get("WeightedCapacity"),
                BidPrice=kind.get("BidPrice"),
                BidPriceAsPercentageOfOnDemandPrice=kind.get("BidPriceAsPercentageOfOnDemandPrice"),
                Configurations=kind.get("Configurations"),
                EbsConfiguration=_disks(kind),
            )
            for kind in fleet.get("InstanceTypeSpecifications", ())
        ],
    )


def _disks(machine: dict[str, Any]) -> dict[str, Any]:
    disks = [
        {"VolumeSpecification": disk["VolumeSpecification"], "VolumesPerInstance": 1}
        for disk in machine.get("EbsBlockDevices", ())
    ]
    return {"EbsBlockDeviceConfigs": disks} if disks else {}


def _bootstrap(action: dict[str, Any]) -> dict[str, Any]:
    return {
        "Name": action["Name"],
        "ScriptBootstrapAction": _filled(Path=action["ScriptPath"], Args=action.get("Args")),
    }
