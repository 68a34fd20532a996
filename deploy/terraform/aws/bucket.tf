resource "aws_kms_key" "lake" {
  count = var.create_bucket && var.kms_key_arn == null ? 1 : 0

  description             = "Objects of ${var.bucket}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = var.tags
}

data "aws_iam_policy_document" "key" {
  # checkov:skip=CKV_AWS_109:the policy of a key gives it to its account; IAM policies say who may use it
  # checkov:skip=CKV_AWS_111:the same
  # checkov:skip=CKV_AWS_356:in the policy of a key the resource is always the key
  # The account's own policies decide who may use the key: the module iam for the lake's roles.
  statement {
    sid       = "Account"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.partition}:iam::${local.account}:root"]
    }
  }
}

resource "aws_s3_bucket" "lake" {
  # checkov:skip=CKV2_AWS_62:syncs list the bucket and need no notifications
  # checkov:skip=CKV_AWS_144:replication is for the owner of the data to decide; versions are kept
  count = var.create_bucket ? 1 : 0

  # Without force_destroy, S3 refuses to delete it as long as anything is in it.
  bucket = var.bucket
  tags   = var.tags
}

resource "aws_s3_bucket_public_access_block" "lake" {
  count = var.create_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.lake[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "lake" {
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.lake[0].id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "lake" {
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.lake[0].id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "lake" {
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.lake[0].id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "lake" {
  # checkov:skip=CKV_AWS_300:both rules end uploads; what is outside the lake's folder is not ours
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.lake[0].id

  # Runs clean up after themselves; this removes what a lost worker left.
  rule {
    id     = "eventlake: ${local.root}segment-stage"
    status = "Enabled"

    filter {
      prefix = "${local.root}segment-stage/"
    }

    expiration {
      days = 14
    }

    noncurrent_version_expiration {
      noncurrent_days = 14
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 14
    }
  }

  # Deleted and replaced objects can be brought back for a month.
  rule {
    id     = "eventlake: old versions"
    status = "Enabled"

    filter {
      prefix = local.root
    }

    noncurrent_version_expiration {
      noncurrent_days = 30
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 14
    }
  }

  depends_on = [aws_s3_bucket_versioning.lake]
}

resource "aws_s3_bucket_logging" "lake" {
  count = var.create_bucket && var.access_log_bucket != null ? 1 : 0

  bucket        = aws_s3_bucket.lake[0].id
  target_bucket = var.access_log_bucket
  target_prefix = "${var.bucket}/"
}

data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "OnlyEncryptedConnections"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "lake" {
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.lake[0].id
  policy = data.aws_iam_policy_document.bucket.json

  depends_on = [aws_s3_bucket_public_access_block.lake]
}
