# The four roles of Segment's guide. data_lake.tf: the one that syncs act in; cluster.tf: those of EMR and its nodes.

data "aws_caller_identity" "here" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

locals {
  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition
  region    = data.aws_region.here.region

  bucket_arn   = "arn:${local.partition}:s3:::${var.bucket}"
  glue         = "arn:${local.partition}:glue:${local.region}:${local.account}"
  keys         = var.kms_key_arn == null ? [] : [var.kms_key_arn]
  external_ids = var.external_ids == null ? [var.workspace_id] : var.external_ids
}
