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
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/SegmentDataLakeRole" }
  }
  mock_resource "aws_emr_cluster" {
    defaults = { id = "j-1ABCDEFGHIJKL" }
  }
}

variables {
  bucket       = "my-lake"
  workspace_id = "a53a097942f713d2"
  subnet_id    = "subnet-0123456789abcdef0"
  databases    = ["web", "ios"]
}

run "whole" {
  assert {
    condition     = length(aws_s3_bucket.lake) + length(aws_s3_bucket_lifecycle_configuration.lake) + length(aws_kms_key.lake) == 0
    error_message = "A bucket that is there must be left alone."
  }

  assert {
    condition     = length(module.emr) == 1 && length(module.glue) == 0 && length(module.lakeformation) == 0
    error_message = "More or less was made than asked for."
  }

  assert {
    condition     = strcontains(output.settings, "root = \"s3://my-lake\"") && strcontains(output.settings, "external_id = \"a53a097942f713d2\"")
    error_message = "The settings do not fit."
  }
}

run "staging_expires" {
  command = plan

  variables {
    create_bucket = true
    prefix        = "team/lake"
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.lake[0].rule[0].filter[0].prefix == "team/lake/segment-stage/"
    error_message = "The rule is for another folder."
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.lake[0].rule[0].expiration[0].days == 14
    error_message = "Staging does not expire."
  }
}

run "without_a_cluster" {
  variables {
    create_cluster = false
    subnet_id      = null
    external_ids   = []
  }

  assert {
    condition     = length(module.emr) == 0 && output.cluster_id == null && !strcontains(output.settings, "runner")
    error_message = "There is a cluster."
  }

  assert {
    condition     = !strcontains(output.settings, "external_id")
    error_message = "The role asks for no external id."
  }
}

run "lake_formation_of_databases_that_are_there" {
  variables {
    lake_formation = true
  }

  assert {
    condition     = length(module.glue) == 0 && length(module.lakeformation[0].grants) == 6
    error_message = "Two roles and three databases make six grants."
  }
}

run "lake_formation_of_databases_that_are_made" {
  variables {
    lake_formation   = true
    create_databases = true
  }

  assert {
    condition     = toset(module.glue[0].databases) == toset(["web", "ios", "__segment_datalake"]) && length(module.lakeformation[0].grants) == 6
    error_message = "Two roles and three databases make six grants."
  }
}

run "a_cluster_needs_a_subnet" {
  command = plan

  variables {
    subnet_id = null
  }

  expect_failures = [var.subnet_id]
}

run "a_bad_bucket_is_refused" {
  command = plan

  variables {
    bucket = "My_Bucket"
  }

  expect_failures = [var.bucket]
}
