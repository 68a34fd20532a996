# The job role: what a sync may do, and no more. No action has a wildcard. It is assumed by those who run the
# `eventlake` command (setting `aws.role_arn`); the cluster's nodes have the same rights on bucket and catalog.

data "aws_iam_policy_document" "job_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "AWS"
      identifiers = length(var.trusted_principals) > 0 ? var.trusted_principals : ["arn:${local.partition}:iam::${local.account}:root"]
    }

    dynamic "condition" {
      for_each = var.external_id == null ? [] : [var.external_id]

      content {
        test     = "StringEquals"
        variable = "sts:ExternalId"
        values   = [condition.value]
      }
    }
  }

  # As the execution role of EMR Serverless.
  statement {
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

resource "aws_iam_role" "job" {
  name               = "${var.name}-job"
  description        = "Syncs the lake in ${var.bucket}"
  assume_role_policy = data.aws_iam_policy_document.job_trust.json
  tags               = local.tags
}

data "aws_iam_policy_document" "lake" {
  statement {
    sid       = "List"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]

    # IfExists: a request for an object that is not there has no prefix, and must be told so instead of being refused.
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = local.prefixes
    }
  }

  statement {
    sid = "Bucket"
    actions = [
      "s3:GetBucketLocation",
      "s3:GetLifecycleConfiguration",
      "s3:ListBucketMultipartUploads",
      "s3:PutLifecycleConfiguration",
    ]
    resources = [local.bucket_arn]
  }

  statement {
    sid = "Objects"
    actions = [
      "s3:AbortMultipartUpload",
      "s3:DeleteObject",
      "s3:GetObject",
      "s3:ListMultipartUploadParts",
      "s3:PutObject",
    ]
    resources = local.objects
  }

  dynamic "statement" {
    for_each = local.key_arn == null ? [] : [local.key_arn]

    content {
      sid       = "Key"
      actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }

  statement {
    sid = "Tables"
    actions = [
      "glue:BatchCreatePartition",
      "glue:BatchDeletePartition",
      "glue:BatchUpdatePartition",
      "glue:CreateTable",
      "glue:DeleteTable",
      "glue:DeleteTableVersion",
      "glue:GetPartition",
      "glue:GetPartitions",
      "glue:GetTable",
      "glue:GetTables",
      "glue:GetTableVersions",
      "glue:UpdateTable",
    ]
    resources = concat(
      ["${local.glue}:catalog"],
      [for name in local.databases : "${local.glue}:database/${name}"],
      [for name in local.databases : "${local.glue}:table/${name}/*"],
    )
  }

  dynamic "statement" {
    for_each = var.create_databases ? [true] : []

    content {
      sid       = "Databases"
      actions   = ["glue:CreateDatabase"]
      resources = concat(["${local.glue}:catalog"], [for name in local.databases : "${local.glue}:database/${name}"])
    }
  }
}

resource "aws_iam_policy" "lake" {
  name        = "${var.name}-lake"
  description = "Read and write the lake in ${var.bucket} and its tables"
  policy      = data.aws_iam_policy_document.lake.json
  tags        = local.tags
}

resource "aws_iam_role_policy_attachment" "job_lake" {
  role       = aws_iam_role.job.name
  policy_arn = aws_iam_policy.lake.arn
}

data "aws_iam_policy_document" "submit" {
  count = var.create_cluster ? 1 : 0

  # Clusters that are tagged as ours: the standing one, and those that replays make after its model.
  statement {
    sid = "Clusters"
    actions = [
      "elasticmapreduce:AddJobFlowSteps",
      "elasticmapreduce:CancelSteps",
      "elasticmapreduce:DescribeCluster",
      "elasticmapreduce:DescribeStep",
      "elasticmapreduce:GetManagedScalingPolicy",
      "elasticmapreduce:ListBootstrapActions",
      "elasticmapreduce:ListInstanceFleets",
      "elasticmapreduce:ListInstanceGroups",
      "elasticmapreduce:TerminateJobFlows",
    ]
    resources = ["arn:${local.partition}:elasticmapreduce:${local.region}:${local.account}:cluster/*"]

    condition {
      test     = "StringEquals"
      variable = "elasticmapreduce:ResourceTag/vendor"
      values   = ["eventlake"]
    }
  }

  statement {
    sid = "StartForAReplay"
    actions = [
      "elasticmapreduce:AddTags",
      "elasticmapreduce:PutAutoTerminationPolicy",
      "elasticmapreduce:PutManagedScalingPolicy",
      "elasticmapreduce:RunJobFlow",
    ]
    resources = ["arn:${local.partition}:elasticmapreduce:${local.region}:${local.account}:cluster/*"]

    condition {
      test     = "StringEquals"
      variable = "elasticmapreduce:RequestTag/vendor"
      values   = ["eventlake"]
    }
  }

  statement {
    sid       = "GiveItItsRoles"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.service[0].arn, aws_iam_role.nodes[0].arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["elasticmapreduce.amazonaws.com", "ec2.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "serverless" {
  count = length(var.serverless_application_arns) > 0 ? 1 : 0

  statement {
    sid = "JobRuns"
    actions = [
      "emr-serverless:CancelJobRun",
      "emr-serverless:GetApplication",
      "emr-serverless:GetJobRun",
      "emr-serverless:StartJobRun",
    ]
    resources = flatten([for arn in var.serverless_application_arns : [arn, "${arn}/jobruns/*"]])
  }

  statement {
    sid       = "GiveThemTheJobRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.job.arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["emr-serverless.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy" "serverless" {
  count = length(var.serverless_application_arns) > 0 ? 1 : 0

  name   = "submit-job-runs"
  role   = aws_iam_role.job.id
  policy = data.aws_iam_policy_document.serverless[0].json
}

resource "aws_iam_policy" "submit" {
  count = var.create_cluster ? 1 : 0

  name        = "${var.name}-submit"
  description = "Submit syncs and replays to clusters tagged vendor = eventlake"
  policy      = data.aws_iam_policy_document.submit[0].json
  tags        = local.tags
}

resource "aws_iam_role_policy_attachment" "job_submit" {
  count = var.create_cluster ? 1 : 0

  role       = aws_iam_role.job.name
  policy_arn = aws_iam_policy.submit[0].arn
}

# EMR itself, and the cluster's nodes.

data "aws_iam_policy_document" "service_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["elasticmapreduce.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "service" {
  count = var.create_cluster ? 1 : 0

  name               = "${var.name}-emr"
  description        = "EMR for ${var.name}"
  assume_role_policy = data.aws_iam_policy_document.service_trust.json
  tags               = local.tags
}

# Amazon's policy for EMR: it may touch only what is tagged for EMR.
resource "aws_iam_role_policy_attachment" "service" {
  count = var.create_cluster ? 1 : 0

  role       = aws_iam_role.service[0].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2"
}

data "aws_iam_policy_document" "service_pass" {
  count = var.create_cluster ? 1 : 0

  statement {
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.nodes[0].arn]

    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["ec2.amazonaws.com"]
    }
  }

  # Encrypted disks of the nodes.
  dynamic "statement" {
    for_each = local.key_arn == null ? [] : [local.key_arn]

    content {
      actions = [
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncryptFrom",
        "kms:ReEncryptTo",
      ]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = local.key_arn == null ? [] : [local.key_arn]

    content {
      actions   = ["kms:CreateGrant"]
      resources = [statement.value]

      condition {
        test     = "Bool"
        variable = "kms:GrantIsForAWSResource"
        values   = ["true"]
      }
    }
  }
}

resource "aws_iam_role_policy" "service_pass" {
  count = var.create_cluster ? 1 : 0

  name   = "give-nodes-their-role-and-disks"
  role   = aws_iam_role.service[0].id
  policy = data.aws_iam_policy_document.service_pass[0].json
}

data "aws_iam_policy_document" "nodes_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "nodes" {
  count = var.create_cluster ? 1 : 0

  name               = "${var.name}-nodes"
  description        = "Nodes of the cluster of ${var.name}"
  assume_role_policy = data.aws_iam_policy_document.nodes_trust.json
  tags               = local.tags
}

resource "aws_iam_role_policy_attachment" "nodes_lake" {
  count = var.create_cluster ? 1 : 0

  role       = aws_iam_role.nodes[0].name
  policy_arn = aws_iam_policy.lake.arn
}

resource "aws_iam_instance_profile" "nodes" {
  count = var.create_cluster ? 1 : 0

  name = "${var.name}-nodes"
  role = aws_iam_role.nodes[0].name
  tags = local.tags
}
