mock_provider "aws" {}

variables {
  bucket               = "my-lake"
  subnet_id            = "subnet-0123456789abcdef0"
  service_role_arn     = "arn:aws:iam::123456789012:role/EMR_DefaultRole"
  instance_profile_arn = "arn:aws:iam::123456789012:instance-profile/EMR_EC2_DefaultRole"
  autoscaling_role_arn = "arn:aws:iam::123456789012:role/EMR_AutoScaling_DefaultRole"
}

run "a_cluster_by_the_book" {
  assert {
    condition     = aws_emr_cluster.lake.tags == tomap({ vendor = "segment", "for-use-with-amazon-emr-managed-policies" = "true" })
    error_message = "The tags that rights depend on are missing."
  }

  assert {
    condition = [
      aws_emr_cluster.lake.master_instance_group[0].instance_type,
      aws_emr_cluster.lake.core_instance_group[0].instance_type, aws_emr_instance_group.task.instance_type,
    ] == ["m5.xlarge", "m5.xlarge", "m5.xlarge"]
    error_message = "The machines are others."
  }

  assert {
    condition     = [aws_emr_cluster.lake.core_instance_group[0].instance_count, aws_emr_instance_group.task.instance_count] == [2, 2]
    error_message = "These are not two core and two task nodes."
  }

  assert {
    condition     = toset(aws_emr_cluster.lake.applications) == toset(["Hadoop", "Hive", "Spark"])
    error_message = "An application is missing."
  }

  assert {
    condition = alltrue([
      for kind in ["hive-site", "spark-hive-site"] : anytrue([
        for one in jsondecode(aws_emr_cluster.lake.configurations_json) :
        one.Classification == kind && try(one.Properties["hive.metastore.client.factory.class"], "") == "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
      ])
    ])
    error_message = "Hive or Spark does not use Glue."
  }

  assert {
    condition     = aws_emr_cluster.lake.log_uri == "s3://my-lake/logs/"
    error_message = "Logs are elsewhere."
  }

  assert {
    condition     = aws_emr_cluster.lake.termination_protection && aws_emr_cluster.lake.keep_job_flow_alive_when_no_steps
    error_message = "The cluster does not stay."
  }

  assert {
    condition = [
      one(aws_emr_managed_scaling_policy.lake[0].compute_limits).minimum_capacity_units,
      one(aws_emr_managed_scaling_policy.lake[0].compute_limits).maximum_capacity_units,
      one(aws_emr_managed_scaling_policy.lake[0].compute_limits).maximum_ondemand_capacity_units,
      one(aws_emr_managed_scaling_policy.lake[0].compute_limits).maximum_core_capacity_units,
    ] == [2, 8, 8, 2]
    error_message = "The cluster scales otherwise."
  }

  assert {
    condition     = aws_emr_cluster.lake.core_instance_group[0].autoscaling_policy == null && aws_emr_instance_group.task.autoscaling_policy == null
    error_message = "Two kinds of scaling at once are refused by EMR."
  }

  assert {
    condition     = output.most_cores == 32 && output.machine == "x86_64"
    error_message = "The settings do not fit the machines."
  }
}

run "scaling_by_rules" {
  variables {
    scaling = "rules"
  }

  assert {
    condition     = length(aws_emr_managed_scaling_policy.lake) == 0
    error_message = "Two kinds of scaling at once are refused by EMR."
  }

  assert {
    condition = [
      for policy in [aws_emr_cluster.lake.core_instance_group[0].autoscaling_policy, aws_emr_instance_group.task.autoscaling_policy] :
      jsondecode(policy).Constraints
    ] == [{ MinCapacity = 2, MaxCapacity = 4 }, { MinCapacity = 2, MaxCapacity = 4 }]
    error_message = "The limits are others."
  }

  assert {
    condition = [
      for rule in concat(jsondecode(aws_emr_cluster.lake.core_instance_group[0].autoscaling_policy).Rules, jsondecode(aws_emr_instance_group.task.autoscaling_policy).Rules) :
      join(" ", [
        rule.Trigger.CloudWatchAlarmDefinition.MetricName, rule.Trigger.CloudWatchAlarmDefinition.ComparisonOperator,
        rule.Trigger.CloudWatchAlarmDefinition.Threshold, rule.Action.SimpleScalingPolicyConfiguration.ScalingAdjustment,
        rule.Action.SimpleScalingPolicyConfiguration.CoolDown,
      ])
      ] == [
      "HDFSUtilization GREATER_THAN_OR_EQUAL 80 1 300",
      "HDFSUtilization LESS_THAN 50 -1 300",
      "ContainerPendingRatio GREATER_THAN_OR_EQUAL 0.75 1 120",
      "YARNMemoryAvailablePercentage LESS_THAN_OR_EQUAL 15 1 120",
      "YARNMemoryAvailablePercentage GREATER_THAN_OR_EQUAL 75 -1 120",
    ]
    error_message = "The rules are others."
  }
}

run "rules_need_a_role" {
  command = plan

  variables {
    scaling              = "rules"
    autoscaling_role_arn = null
  }

  expect_failures = [aws_emr_cluster.lake]
}

run "place_key_pair_and_groups_are_settings" {
  variables {
    prefix                        = "team/lake"
    key_name                      = "admin"
    master_security_group         = "sg-1"
    slave_security_group          = "sg-2"
    service_access_security_group = "sg-3"
    tag_key                       = "team"
    tag_value                     = "events"
    tags                          = { cost = "lake" }
    tag_subnet                    = false
    master_instance_type          = "m6g.xlarge"
    core_instance_type            = "m6g.xlarge"
    task_instance_type            = "r7gd.2xlarge"
    idle_timeout                  = 3600
  }

  assert {
    condition = [
      aws_emr_cluster.lake.ec2_attributes[0].key_name, aws_emr_cluster.lake.ec2_attributes[0].emr_managed_master_security_group,
      aws_emr_cluster.lake.ec2_attributes[0].emr_managed_slave_security_group, aws_emr_cluster.lake.ec2_attributes[0].service_access_security_group,
    ] == ["admin", "sg-1", "sg-2", "sg-3"]
    error_message = "Nodes are reached by other ways."
  }

  assert {
    condition     = aws_emr_cluster.lake.tags["team"] == "events" && aws_emr_cluster.lake.tags["cost"] == "lake" && !contains(keys(aws_emr_cluster.lake.tags), "vendor")
    error_message = "The tags are others."
  }

  assert {
    condition     = aws_emr_cluster.lake.log_uri == "s3://my-lake/team/lake/logs/" && aws_s3_object.bootstrap.key == "team/lake/segment-data/bootstrap/bootstrap.sh"
    error_message = "The cluster writes outside of the lake's folder."
  }

  assert {
    condition     = length(aws_ec2_tag.subnet) == 0 && output.machine == "aarch64"
    error_message = "The subnet is tagged, or the processor is another."
  }

  assert {
    condition     = aws_emr_cluster.lake.auto_termination_policy[0].idle_timeout == 3600 && !aws_emr_cluster.lake.termination_protection
    error_message = "An idle cluster does not end."
  }
}

run "one_security_group_is_a_mistake" {
  command = plan

  variables {
    master_security_group = "sg-1"
  }

  expect_failures = [var.slave_security_group]
}

run "two_kinds_of_processors_are_a_mistake" {
  command = plan

  variables {
    core_instance_type = "m6g.xlarge"
  }

  expect_failures = [var.task_instance_type]
}

run "an_old_release_is_refused" {
  command = plan

  variables {
    release_label = "emr-5.33.0"
  }

  expect_failures = [var.release_label]
}
