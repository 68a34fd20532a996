# A whole lake of four modules, each of which can be used alone, and a bucket if there is none (bucket.tf).

data "aws_caller_identity" "here" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

locals {
  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition

  bucket_arn = "arn:${local.partition}:s3:::${var.bucket}"
  root       = var.prefix == "" ? "" : "${var.prefix}/"
  bucket     = var.create_bucket ? aws_s3_bucket.lake[0].id : var.bucket
  key_arn    = var.kms_key_arn != null ? var.kms_key_arn : one(aws_kms_key.lake[*].arn)
}

module "iam" {
  source = "./modules/iam"

  bucket                      = var.bucket
  suffix                      = var.suffix
  workspace_id                = var.workspace_id
  external_ids                = var.external_ids
  trusted_principals          = var.trusted_principals
  extras                      = var.extras
  serverless_application_arns = var.serverless_application_arns
  kms_key_arn                 = local.key_arn
  tag_key                     = var.tag_key
  tag_value                   = var.tag_value
  tags                        = var.tags
}

module "emr" {
  source = "./modules/emr"
  count  = var.create_cluster ? 1 : 0

  name                          = var.cluster_name
  bucket                        = local.bucket
  prefix                        = var.prefix
  subnet_id                     = var.subnet_id
  tag_subnet                    = var.tag_subnet
  service_role_arn              = module.iam.service_role_arn
  instance_profile_arn          = module.iam.instance_profile_arn
  autoscaling_role_arn          = module.iam.autoscaling_role_arn
  key_name                      = var.key_name
  master_security_group         = var.master_security_group
  slave_security_group          = var.slave_security_group
  service_access_security_group = var.service_access_security_group
  release_label                 = var.release_label
  master_instance_type          = var.master_instance_type
  core_instance_type            = var.core_instance_type
  task_instance_type            = var.task_instance_type
  core_instance_count           = var.core_instance_count
  task_instance_count           = var.task_instance_count
  scaling                       = var.scaling
  minimum_units                 = var.minimum_units
  maximum_units                 = var.maximum_units
  core_instance_max_count       = var.core_instance_max_count
  task_instance_max_count       = var.task_instance_max_count
  idle_timeout                  = var.idle_timeout
  kms_key_arn                   = local.key_arn
  tag_key                       = var.tag_key
  tag_value                     = var.tag_value
  tags                          = var.tags
}

module "glue" {
  source = "./modules/glue"
  count  = var.create_databases ? 1 : 0

  bucket    = local.bucket
  prefix    = var.prefix
  databases = var.databases
  tags      = var.tags
}

module "lakeformation" {
  source = "./modules/lakeformation"
  count  = var.lake_formation ? 1 : 0

  databases = var.create_databases ? toset(module.glue[0].databases) : setunion(var.databases, ["__segment_datalake"])
  roles = {
    data_lake        = module.iam.data_lake_role_arn
    instance_profile = module.iam.instance_profile_role_arn
  }
}
