output "settings" {
  description = "The AWS part of `eventlake.toml`."
  value = join("\n", concat(
    var.create_cluster ? ["runner = \"emr\"", ""] : [],
    [
      "[lake]",
      "root = \"s3://${var.bucket}${var.prefix == "" ? "" : "/${var.prefix}"}\"",
      "",
      "[aws]",
      "region = \"${local.region}\"",
      "role_arn = \"${aws_iam_role.job.arn}\"",
    ],
    var.external_id == null ? [] : ["external_id = \"${var.external_id}\""],
    [
      "",
      "[catalog]",
      "kind = \"glue\"",
      "glue_catalog_id = \"${local.account}\"",
      "",
    ],
    var.create_cluster ? [
      "[spark]",
      "conf = { \"spark.default.parallelism\" = \"${4 * var.maximum_units}\" }",
      "",
      "[emr]",
      "cluster_id = \"${aws_emr_cluster.lake[0].id}\"",
      "python = \"python3.11\"",
      "machine = \"${can(regex("^[a-z]+[0-9]+[a-z]*g[a-z]*\\.", var.core_instance_type)) ? "aarch64" : "x86_64"}\"",
      "",
    ] : [],
  ))
}

output "job_role_arn" {
  description = "Role that a sync acts in: the setting `aws.role_arn`; also the execution role for EMR Serverless."
  value       = aws_iam_role.job.arn
}

output "cluster_id" {
  description = "The setting `emr.cluster_id`; null without a cluster."
  value       = one(aws_emr_cluster.lake[*].id)
}

output "bucket" {
  description = "Name of the bucket."
  value       = var.bucket
}

output "kms_key_arn" {
  description = "Key of the bucket; null if the bucket was there and no key was given."
  value       = local.key_arn
}
