# What features need that Segment did not have; see "Rights" in docs/aws.md.

locals {
  clusters = "arn:${local.partition}:elasticmapreduce:${local.region}:${local.account}:cluster/*"
  glue_extras = concat(
    contains(var.extras, "athena") ? ["glue:GetDatabase"] : [],
    contains(var.extras, "retype") ? ["glue:BatchUpdatePartition"] : [],
  )
}

data "aws_iam_policy_document" "extras" {
  dynamic "statement" {
    for_each = length(local.glue_extras) == 0 ? [] : [local.glue_extras]

    content {
      sid       = "Catalog"
      actions   = statement.value
      resources = ["${local.glue}:catalog", "${local.glue}:database/*", "${local.glue}:table/*"]
    }
  }

  dynamic "statement" {
    for_each = contains(var.extras, "clusters") ? [true] : []

    content {
      sid = "LookAtClusters"
      actions = [
        "elasticmapreduce:GetManagedScalingPolicy",
        "elasticmapreduce:ListBootstrapActions",
        "elasticmapreduce:ListInstanceFleets",
        "elasticmapreduce:ListInstanceGroups",
      ]
      resources = [local.clusters]

      condition {
        test     = "StringEquals"
        variable = "elasticmapreduce:ResourceTag/${var.tag_key}"
        values   = [var.tag_value]
      }
    }
  }

  # A cluster that is yet to be made has no tag of its own: the request has it.
  dynamic "statement" {
    for_each = contains(var.extras, "clusters") ? [true] : []

    content {
      sid = "StartThemAlike"
      actions = [
        "elasticmapreduce:AddTags",
        "elasticmapreduce:PutAutoTerminationPolicy",
        "elasticmapreduce:PutManagedScalingPolicy",
        "elasticmapreduce:RunJobFlow",
      ]
      resources = [local.clusters]

      condition {
        test     = "StringEquals"
        variable = "elasticmapreduce:RequestTag/${var.tag_key}"
        values   = [var.tag_value]
      }
    }
  }

  dynamic "statement" {
    for_each = length(var.serverless_application_arns) == 0 ? [] : [true]

    content {
      sid = "JobRuns"
      actions = [
        "emr-serverless:CancelJobRun",
        "emr-serverless:GetApplication",
        "emr-serverless:GetJobRun",
        "emr-serverless:StartJobRun",
      ]
      resources = flatten([for arn in var.serverless_application_arns : [arn, "${arn}/jobruns/*"]])
    }
  }

  dynamic "statement" {
    for_each = length(var.serverless_application_arns) == 0 ? [] : [true]

    content {
      sid       = "GiveJobRunsThisRole"
      actions   = ["iam:PassRole"]
      resources = [aws_iam_role.data_lake.arn]

      condition {
        test     = "StringEquals"
        variable = "iam:PassedToService"
        values   = ["emr-serverless.amazonaws.com"]
      }
    }
  }
}

resource "aws_iam_role_policy" "extras" {
  count = length(var.extras) + length(var.serverless_application_arns) == 0 ? 0 : 1

  name   = "extras"
  role   = aws_iam_role.data_lake.id
  policy = data.aws_iam_policy_document.extras.json
}
