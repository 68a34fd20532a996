output "settings" {
  description = "The AWS part of `eventlake.toml`."
  value = join("\n", concat(
    var.create_cluster ? ["runner = \"emr\"", ""] : [],
    [
      "[lake]",
      "root = \"s3://${var.bucket}${var.prefix == "" ? "" : "/${var.prefix}"}\"",
      "",
      "[aws]",
      "region = \"${data.aws_region.here.region}\"",
      "role_arn = \"${module.iam.data_lake_role_arn}\"",
    ],
    [for id in slice(module.iam.external_ids, 0, min(1, length(module.iam.external_ids))) : "external_id = \"${id}\""],
    [
      "",
      "[catalog]",
      "kind = \"glue\"",
      "glue_catalog_id = \"${local.account}\"",
      "",
    ],
    var.create_cluster ? [
      "[spark]",
      "conf = { \"spark.default.parallelism\" = \"${module.emr[0].most_cores}\" }",
      "",
      "[emr]",
      "cluster_id = \"${module.emr[0].cluster_id}\"",
      "tag_key = \"${var.tag_key}\"",
      "tag_value = \"${var.tag_value}\"",
      "python = \"python3.11\"",
      "machine = \"${module.emr[0].machine}\"",
      "",
    ] : [],
  ))
}

output "data_lake_role_arn" {
  description = "Role that syncs act in: the setting `aws.role_arn`; also the execution role for EMR Serverless."
  value       = module.iam.data_lake_role_arn
}

output "cluster_id" {
  description = "The setting `emr.cluster_id`; null without a cluster."
  value       = one(module.emr[*].cluster_id)
}

output "bucket" {
  description = "Name of the bucket."
  value       = var.bucket
}

output "kms_key_arn" {
  description = "Key of the bucket; null if the bucket was there and no key was given."
  value       = local.key_arn
}
