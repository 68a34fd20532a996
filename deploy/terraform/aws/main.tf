# The lake's account-wide facts and names. What is made: bucket.tf, roles.tf, cluster.tf, lake_formation.tf.

data "aws_caller_identity" "here" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

locals {
  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition
  region    = data.aws_region.here.region

  tags = merge(var.tags, { vendor = "eventlake" })

  bucket_arn = "arn:${local.partition}:s3:::${var.bucket}"
  root       = var.prefix == "" ? "" : "${var.prefix}/"
  # All that eventlake ever touches.
  reserved = ["segment-data", "segment-stage", "segment-logs", "logs"]
  objects  = [for name in local.reserved : "${local.bucket_arn}/${local.root}${name}/*"]
  prefixes = flatten([for name in local.reserved : ["${local.root}${name}", "${local.root}${name}/*"]])

  databases = setunion(var.databases, ["__segment_datalake"])
  glue      = "arn:${local.partition}:glue:${local.region}:${local.account}"
  key_arn   = var.kms_key_arn != null ? var.kms_key_arn : one(aws_kms_key.lake[*].arn)
}
