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
  bucket    = "my-lake"
  subnet_id = "subnet-0123456789abcdef0"
  databases = ["web", "ios"]
}

run "whole" {
  assert {
    condition = alltrue([
      for statement in concat(data.aws_iam_policy_document.lake.statement, data.aws_iam_policy_document.submit[0].statement) :
      alltrue([for action in statement.actions : !strcontains(action, "*")])
    ])
    error_message = "The job role has a wildcard action."
  }

  assert {
    condition = alltrue([
      for statement in data.aws_iam_policy_document.lake.statement : !contains(statement.resources, "*")
    ])
    error_message = "The job role may act on everything."
  }

  assert {
    condition     = aws_emr_cluster.lake[0].tags["vendor"] == "eventlake" && aws_s3_bucket.lake[0].tags["vendor"] == "eventlake"
    error_message = "The tag that rights depend on is missing."
  }

  assert {
    condition     = aws_emr_managed_scaling_policy.lake[0].compute_limits[0].maximum_capacity_units == 8
    error_message = "The cluster does not scale."
  }

  assert {
    condition     = strcontains(aws_emr_cluster.lake[0].configurations_json, "AWSGlueDataCatalogHiveClientFactory")
    error_message = "Spark on the cluster does not use Glue."
  }

  assert {
    condition     = strcontains(output.settings, "root = \"s3://my-lake\"") && strcontains(output.settings, "machine = \"aarch64\"")
    error_message = "The settings do not fit."
  }

  assert {
    condition     = length(aws_lakeformation_permissions.tables) == 0
    error_message = "Lake Formation was not asked for."
  }
}

run "staging_expires" {
  command = plan

  variables {
    prefix = "team/lake"
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.lake[0].rule[0].filter[0].prefix == "team/lake/segment-stage/"
    error_message = "The rule is for another folder."
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.lake[0].rule[0].expiration[0].days == 14
    error_message = "Staging does not expire."
  }

  assert {
    condition     = contains(local.objects, "arn:aws:s3:::my-lake/team/lake/segment-logs/*")
    error_message = "The rights are for another folder."
  }
}

run "a_bucket_that_is_there" {
  variables {
    create_bucket = false
  }

  assert {
    condition     = length(aws_s3_bucket.lake) + length(aws_s3_bucket_lifecycle_configuration.lake) + length(aws_kms_key.lake) == 0
    error_message = "A bucket that is there must be left alone."
  }
}

run "without_a_cluster" {
  variables {
    create_cluster = false
    subnet_id      = null
    external_id    = "workspace-1"
  }

  assert {
    condition     = length(aws_emr_cluster.lake) == 0 && output.cluster_id == null && !strcontains(output.settings, "runner")
    error_message = "There is a cluster."
  }

  assert {
    condition     = strcontains(output.settings, "external_id = \"workspace-1\"")
    error_message = "The external id is missing."
  }
}

run "lake_formation" {
  variables {
    lake_formation = true
  }

  assert {
    condition     = length(aws_lakeformation_permissions.tables) == 6 && length(aws_lakeformation_permissions.databases) == 6
    error_message = "Two roles and three databases make six grants."
  }

  assert {
    condition     = length(aws_lakeformation_permissions.catalog) == 2
    error_message = "Both roles must be able to make databases."
  }
}

run "a_cluster_needs_a_subnet" {
  command = plan

  variables {
    subnet_id = null
  }

  expect_failures = [aws_emr_cluster.lake]
}

run "a_bad_bucket_is_refused" {
  command = plan

  variables {
    bucket = "My_Bucket"
  }

  expect_failures = [var.bucket]
}
