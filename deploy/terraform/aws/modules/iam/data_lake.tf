# The data lake role: assumed by those who run the `eventlake` command (setting `aws.role_arn`).

data "aws_iam_policy_document" "data_lake_trust" {
  statement {
    sid     = "Command"
    actions = ["sts:AssumeRole"]

    principals {
      type        = "AWS"
      identifiers = length(var.trusted_principals) > 0 ? var.trusted_principals : ["arn:${local.partition}:iam::${local.account}:root"]
    }

    dynamic "condition" {
      for_each = length(local.external_ids) == 0 ? [] : [local.external_ids]

      content {
        test     = "StringEquals"
        variable = "sts:ExternalId"
        values   = condition.value
      }
    }
  }

  # As the execution role of EMR Serverless.
  dynamic "statement" {
    for_each = length(var.serverless_application_arns) == 0 ? [] : [true]

    content {
      sid     = "Serverless"
      actions = ["sts:AssumeRole"]

      principals {
        type        = "Service"
        identifiers = ["emr-serverless.amazonaws.com"]
      }

      condition {
        test     = "StringEquals"
        variable = "aws:SourceAccount"
        values   = [local.account]
      }
    }
  }
}

resource "aws_iam_role" "data_lake" {
  name               = "SegmentDataLakeRole${var.suffix}"
  description        = "Syncs the lake in ${var.bucket}"
  assume_role_policy = data.aws_iam_policy_document.data_lake_trust.json
  tags               = var.tags
}

# Segment's policy, action by action: what is set up here has the rights of what is set up by the book.
data "aws_iam_policy_document" "data_lake" {
  # checkov:skip=CKV_AWS_49:the policy is Segment's, action by action; it allows everything on the lake's bucket only
  # checkov:skip=CKV_AWS_107:the same
  # checkov:skip=CKV_AWS_111:the same
  # checkov:skip=CKV_AWS_356:the same; clusters are told apart by their tag
  statement {
    sid = "Clusters"
    actions = [
      "elasticmapreduce:AddJobFlowSteps",
      "elasticmapreduce:AddTags",
      "elasticmapreduce:CancelSteps",
      "elasticmapreduce:DescribeCluster",
      "elasticmapreduce:DescribeStep",
      "elasticmapreduce:RunJobFlow",
      "elasticmapreduce:TerminateJobFlows",
    ]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "elasticmapreduce:ResourceTag/${var.tag_key}"
      values   = [var.tag_value]
    }
  }

  statement {
    sid = "Catalog"
    actions = [
      "glue:BatchCreatePartition",
      "glue:BatchDeletePartition",
      "glue:BatchDeleteTable",
      "glue:BatchDeleteTableVersion",
      "glue:BatchGetPartition",
      "glue:CreateDatabase",
      "glue:CreatePartition",
      "glue:CreateTable",
      "glue:DeletePartition",
      "glue:DeleteTable",
      "glue:DeleteTableVersion",
      "glue:GetPartition",
      "glue:GetPartitions",
      "glue:GetTable",
      "glue:GetTableVersion",
      "glue:GetTableVersions",
      "glue:GetTables",
      "glue:UpdatePartition",
      "glue:UpdateTable",
    ]
    resources = ["${local.glue}:catalog", "${local.glue}:database/default", "${local.glue}:database/*", "${local.glue}:table/*"]
  }

  statement {
    sid       = "Bucket"
    actions   = ["*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]
  }

  statement {
    sid       = "Athena"
    actions   = ["athena:*"]
    resources = ["*"]
  }

  statement {
    sid       = "GiveClustersTheirRoles"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.service.arn, aws_iam_role.instance_profile.arn, aws_iam_role.autoscaling.arn]
  }

  # Of a bucket with a key of its own.
  dynamic "statement" {
    for_each = local.keys

    content {
      sid       = "Key"
      actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

resource "aws_iam_policy" "data_lake" {
  name        = "SegmentDataLakePolicy${var.suffix}"
  description = "Read and write the lake in ${var.bucket} and its tables"
  policy      = data.aws_iam_policy_document.data_lake.json
  tags        = var.tags
}

resource "aws_iam_role_policy_attachment" "data_lake" {
  role       = aws_iam_role.data_lake.name
  policy_arn = aws_iam_policy.data_lake.arn
}
