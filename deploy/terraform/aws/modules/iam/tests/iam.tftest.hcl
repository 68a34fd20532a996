mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  bucket       = "my-lake"
  workspace_id = "a53a097942f713d2"
}

run "four_roles_by_their_documented_names" {
  assert {
    condition = [
      aws_iam_role.data_lake.name, aws_iam_role.service.name, aws_iam_role.autoscaling.name,
      aws_iam_role.instance_profile.name, aws_iam_instance_profile.nodes.name, aws_iam_policy.data_lake.name,
      ] == [
      "SegmentDataLakeRole", "SegmentEMRServiceRole", "SegmentEMRAutoscalingRole",
      "SegmentEMRInstanceProfileRole", "SegmentEMRInstanceProfile", "SegmentDataLakePolicy",
    ]
    error_message = "The names are not those of Segment's guide."
  }

  assert {
    condition = jsonencode([
      for trust in [data.aws_iam_policy_document.service_trust, data.aws_iam_policy_document.autoscaling_trust, data.aws_iam_policy_document.nodes_trust] :
      one(one(trust.statement).principals).identifiers
      ]) == jsonencode([
      ["elasticmapreduce.amazonaws.com"],
      ["application-autoscaling.amazonaws.com", "elasticmapreduce.amazonaws.com"],
      ["ec2.amazonaws.com"],
    ])
    error_message = "Others than those who should can act in the roles of a cluster."
  }

  assert {
    condition     = aws_iam_role_policy_attachment.service.policy_arn == "arn:aws:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2"
    error_message = "EMR has not the rights that Amazon says it needs."
  }

  assert {
    condition = toset(one(data.aws_iam_policy_document.autoscaling.statement).actions) == toset([
      "cloudwatch:DescribeAlarms", "elasticmapreduce:ListInstanceGroups", "elasticmapreduce:ModifyInstanceGroups",
    ])
    error_message = "Automatic scaling has other rights than documented."
  }
}

run "the_policy_is_the_documented_one" {
  assert {
    condition = { for one in data.aws_iam_policy_document.data_lake.statement : one.sid => toset(one.actions) } == {
      Clusters = toset([for action in ["AddJobFlowSteps", "AddTags", "CancelSteps", "DescribeCluster", "DescribeStep", "RunJobFlow", "TerminateJobFlows"] : "elasticmapreduce:${action}"])
      Catalog = toset([for action in [
        "BatchCreatePartition", "BatchDeletePartition", "BatchDeleteTable", "BatchDeleteTableVersion", "BatchGetPartition",
        "CreateDatabase", "CreatePartition", "CreateTable", "DeletePartition", "DeleteTable", "DeleteTableVersion",
        "GetPartition", "GetPartitions", "GetTable", "GetTableVersion", "GetTableVersions", "GetTables", "UpdatePartition",
        "UpdateTable",
      ] : "glue:${action}"])
      Bucket                 = toset(["*"])
      Athena                 = toset(["athena:*"])
      GiveClustersTheirRoles = toset(["iam:PassRole"])
    }
    error_message = "The actions are not those of Segment's policy."
  }

  assert {
    condition = { for one in data.aws_iam_policy_document.data_lake.statement : one.sid => toset(one.resources) } == {
      Clusters               = toset(["*"])
      Catalog                = toset([for name in ["catalog", "database/default", "database/*", "table/*"] : "arn:aws:glue:eu-central-1:123456789012:${name}"])
      Bucket                 = toset(["arn:aws:s3:::my-lake", "arn:aws:s3:::my-lake/*"])
      Athena                 = toset(["*"])
      GiveClustersTheirRoles = toset([aws_iam_role.service.arn, aws_iam_role.instance_profile.arn, aws_iam_role.autoscaling.arn])
    }
    error_message = "The places are not those of Segment's policy."
  }

  assert {
    condition = [for one in data.aws_iam_policy_document.data_lake.statement : [for condition in one.condition : "${condition.test} ${condition.variable}=${join(",", condition.values)}"] if one.sid == "Clusters"] == [
      ["StringEquals elasticmapreduce:ResourceTag/vendor=segment"],
    ]
    error_message = "Clusters are not told apart by their tag."
  }
}

run "extras_come_beside_it" {
  assert {
    condition = toset(flatten(data.aws_iam_policy_document.extras.statement[*].actions)) == toset([
      "glue:GetDatabase", "glue:BatchUpdatePartition",
      "elasticmapreduce:ListInstanceGroups", "elasticmapreduce:ListInstanceFleets", "elasticmapreduce:ListBootstrapActions",
      "elasticmapreduce:GetManagedScalingPolicy", "elasticmapreduce:PutManagedScalingPolicy",
      "elasticmapreduce:PutAutoTerminationPolicy", "elasticmapreduce:RunJobFlow", "elasticmapreduce:AddTags",
    ])
    error_message = "These are not the rights that docs/aws.md names."
  }

  assert {
    condition     = !contains(flatten(data.aws_iam_policy_document.extras.statement[*].resources), "*")
    error_message = "An extra may act on everything."
  }
}

run "one_extra_brings_its_rights_only" {
  variables {
    extras = ["retype"]
  }

  assert {
    condition     = flatten(data.aws_iam_policy_document.extras.statement[*].actions) == ["glue:BatchUpdatePartition"]
    error_message = "Other features came with it."
  }
}

run "without_extras_there_is_nothing_but_segments_policy" {
  variables {
    extras = []
  }

  assert {
    condition     = length(aws_iam_role_policy.extras) == 0 && length(data.aws_iam_policy_document.data_lake.statement) == 5
    error_message = "The role may do more."
  }
}

run "names_and_tag_are_settings" {
  variables {
    suffix    = "-eu"
    tag_key   = "team"
    tag_value = "events"
  }

  assert {
    condition = alltrue([for name in [
      aws_iam_role.data_lake.name, aws_iam_role.service.name, aws_iam_role.autoscaling.name,
      aws_iam_role.instance_profile.name, aws_iam_instance_profile.nodes.name, aws_iam_policy.data_lake.name,
    ] : endswith(name, "-eu")])
    error_message = "A second lake in the account would have the same names."
  }

  assert {
    condition = toset([
      for condition in flatten(concat(data.aws_iam_policy_document.data_lake.statement, data.aws_iam_policy_document.extras.statement)[*].condition) :
      "${condition.variable}=${join(",", condition.values)}"
    ]) == toset(["elasticmapreduce:ResourceTag/team=events", "elasticmapreduce:RequestTag/team=events"])
    error_message = "A policy asks for another tag."
  }
}

run "the_workspace_is_the_external_id" {
  assert {
    condition     = [for one in flatten(data.aws_iam_policy_document.data_lake_trust.statement[*].condition) : "${one.test} ${one.variable} ${join(",", one.values)}"] == ["StringEquals sts:ExternalId a53a097942f713d2"]
    error_message = "The role can be assumed without the id of the workspace."
  }

  assert {
    condition     = toset(one(one(data.aws_iam_policy_document.data_lake_trust.statement).principals).identifiers) == toset(["arn:aws:iam::123456789012:root"])
    error_message = "Others than this account are trusted."
  }
}

run "ids_of_sources_are_external_ids_too" {
  variables {
    external_ids       = ["a53a097942f713d2", "9aQzz7xTe1", "rL3pdgxyZQ"]
    trusted_principals = ["arn:aws:iam::123456789012:role/scheduler"]
  }

  assert {
    condition     = toset(one(one(data.aws_iam_policy_document.data_lake_trust.statement).condition).values) == toset(["a53a097942f713d2", "9aQzz7xTe1", "rL3pdgxyZQ"])
    error_message = "An id is missing."
  }

  assert {
    condition     = toset(one(one(data.aws_iam_policy_document.data_lake_trust.statement).principals).identifiers) == toset(["arn:aws:iam::123456789012:role/scheduler"])
    error_message = "Others are trusted."
  }
}

run "no_external_id_is_a_decision" {
  variables {
    workspace_id = null
    external_ids = []
  }

  assert {
    condition     = length(one(data.aws_iam_policy_document.data_lake_trust.statement).condition) == 0
    error_message = "An empty list of ids lets nobody in."
  }
}

run "neither_a_workspace_nor_ids_is_a_mistake" {
  command = plan

  variables {
    workspace_id = null
  }

  expect_failures = [var.external_ids]
}

run "an_extra_that_is_unknown_is_a_mistake" {
  command = plan

  variables {
    extras = ["everything"]
  }

  expect_failures = [var.extras]
}

run "a_key_may_be_used_by_those_who_read_and_write" {
  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/0"
  }

  assert {
    condition = alltrue([
      for document in [data.aws_iam_policy_document.data_lake, data.aws_iam_policy_document.nodes, data.aws_iam_policy_document.service_pass] :
      anytrue([for one in document.statement : one.sid == "Key" && toset(one.resources) == toset(["arn:aws:kms:eu-central-1:123456789012:key/0"])])
    ])
    error_message = "A role cannot use the key."
  }
}

run "serverless" {
  variables {
    serverless_application_arns = ["arn:aws:emr-serverless:eu-central-1:123456789012:/applications/00abc"]
    extras                      = []
  }

  assert {
    condition     = [for one in data.aws_iam_policy_document.extras.statement : one.sid] == ["JobRuns", "GiveJobRunsThisRole"]
    error_message = "Job runs cannot be started."
  }

  assert {
    condition     = length(data.aws_iam_policy_document.data_lake_trust.statement) == 2
    error_message = "Job runs cannot act in the role."
  }
}

run "nodes_have_no_wildcard_but_to_look" {
  assert {
    condition = toset([
      for action in flatten(data.aws_iam_policy_document.nodes.statement[*].actions) : action if strcontains(action, "*")
    ]) == toset(["ec2:Describe*", "elasticmapreduce:Describe*"])
    error_message = "Nodes may do anything somewhere."
  }
}
