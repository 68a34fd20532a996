# EMR itself, its automatic scaling, and the cluster's nodes.

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
  name               = "SegmentEMRServiceRole${var.suffix}"
  description        = "EMR for the lake in ${var.bucket}"
  assume_role_policy = data.aws_iam_policy_document.service_trust.json
  tags               = var.tags
}

# Amazon's policy for EMR: it may touch only what is tagged for EMR.
resource "aws_iam_role_policy_attachment" "service" {
  role       = aws_iam_role.service.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonEMRServicePolicy_v2"
}

data "aws_iam_policy_document" "service_pass" {
  statement {
    sid       = "GiveNodesTheirRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.instance_profile.arn]

    condition {
      test     = "StringLike"
      variable = "iam:PassedToService"
      values   = ["ec2.amazonaws.com*"]
    }
  }

  statement {
    sid       = "GiveScalingItsRole"
    actions   = ["iam:PassRole"]
    resources = [aws_iam_role.autoscaling.arn]

    condition {
      test     = "StringLike"
      variable = "iam:PassedToService"
      values   = ["application-autoscaling.amazonaws.com*"]
    }
  }

  # Encrypted disks of the nodes.
  dynamic "statement" {
    for_each = local.keys

    content {
      sid = "Key"
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
    for_each = local.keys

    content {
      sid       = "KeyForDisks"
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
  name   = "give-roles-and-disks"
  role   = aws_iam_role.service.id
  policy = data.aws_iam_policy_document.service_pass.json
}

data "aws_iam_policy_document" "autoscaling_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["application-autoscaling.amazonaws.com", "elasticmapreduce.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "autoscaling" {
  name               = "SegmentEMRAutoscalingRole${var.suffix}"
  description        = "Automatic scaling of clusters for the lake in ${var.bucket}"
  assume_role_policy = data.aws_iam_policy_document.autoscaling_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "autoscaling" {
  # checkov:skip=CKV_AWS_111:Segment's rights; alarms cannot be told apart, and EMR changes groups of its own clusters only
  # checkov:skip=CKV_AWS_356:the same
  statement {
    actions = [
      "cloudwatch:DescribeAlarms",
      "elasticmapreduce:ListInstanceGroups",
      "elasticmapreduce:ModifyInstanceGroups",
    ]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "autoscaling" {
  name   = "scale"
  role   = aws_iam_role.autoscaling.id
  policy = data.aws_iam_policy_document.autoscaling.json
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

resource "aws_iam_role" "instance_profile" {
  name               = "SegmentEMRInstanceProfileRole${var.suffix}"
  description        = "Nodes of clusters for the lake in ${var.bucket}"
  assume_role_policy = data.aws_iam_policy_document.nodes_trust.json
  tags               = var.tags
}

# Segment's, without its wildcards on CloudWatch and SimpleDB, which nothing here uses.
data "aws_iam_policy_document" "nodes" {
  # checkov:skip=CKV_AWS_356:what may be looked at cannot be named in advance
  statement {
    sid = "Bucket"
    actions = [
      "s3:GetBucketLocation",
      "s3:GetBucketVersioning",
      "s3:ListBucket",
      "s3:ListBucketMultipartUploads",
      "s3:ListBucketVersions",
    ]
    resources = [local.bucket_arn]
  }

  statement {
    sid = "Objects"
    actions = [
      "s3:AbortMultipartUpload",
      "s3:DeleteObject",
      "s3:GetObject",
      "s3:GetObjectTagging",
      "s3:GetObjectVersion",
      "s3:ListMultipartUploadParts",
      "s3:PutObject",
      "s3:PutObjectTagging",
    ]
    resources = ["${local.bucket_arn}/*"]
  }

  # Hive and Spark ask for functions, and for the database `default`, before anything else.
  statement {
    sid = "Catalog"
    actions = [
      "glue:BatchCreatePartition",
      "glue:BatchDeletePartition",
      "glue:BatchGetPartition",
      "glue:CreateDatabase",
      "glue:CreatePartition",
      "glue:CreateTable",
      "glue:CreateUserDefinedFunction",
      "glue:DeleteDatabase",
      "glue:DeletePartition",
      "glue:DeleteTable",
      "glue:DeleteUserDefinedFunction",
      "glue:GetDatabase",
      "glue:GetDatabases",
      "glue:GetPartition",
      "glue:GetPartitions",
      "glue:GetTable",
      "glue:GetTableVersions",
      "glue:GetTables",
      "glue:GetUserDefinedFunction",
      "glue:GetUserDefinedFunctions",
      "glue:UpdateDatabase",
      "glue:UpdatePartition",
      "glue:UpdateTable",
      "glue:UpdateUserDefinedFunction",
    ]
    resources = [
      "${local.glue}:catalog",
      "${local.glue}:database/*",
      "${local.glue}:table/*",
      "${local.glue}:userDefinedFunction/*",
    ]
  }

  statement {
    sid = "LookAtMachines"
    actions = [
      "ec2:Describe*",
      "elasticmapreduce:Describe*",
      "elasticmapreduce:ListBootstrapActions",
      "elasticmapreduce:ListClusters",
      "elasticmapreduce:ListInstanceGroups",
      "elasticmapreduce:ListInstances",
      "elasticmapreduce:ListSteps",
    ]
    resources = ["*"]
  }

  dynamic "statement" {
    for_each = local.keys

    content {
      sid       = "Key"
      actions   = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

resource "aws_iam_role_policy" "nodes" {
  name   = "lake"
  role   = aws_iam_role.instance_profile.id
  policy = data.aws_iam_policy_document.nodes.json
}

resource "aws_iam_instance_profile" "nodes" {
  name = "SegmentEMRInstanceProfile${var.suffix}"
  role = aws_iam_role.instance_profile.name
  tags = var.tags
}
