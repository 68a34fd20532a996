output "data_lake_role_arn" {
  description = "Role that syncs act in: the setting `aws.role_arn`; also the execution role for EMR Serverless."
  value       = aws_iam_role.data_lake.arn
}

output "service_role_arn" {
  description = "Role of EMR, for the module `emr`."
  value       = aws_iam_role.service.arn

  # A cluster that starts before its role may do anything fails.
  depends_on = [aws_iam_role_policy.service_pass, aws_iam_role_policy_attachment.service]
}

output "instance_profile_arn" {
  description = "Instance profile of the nodes, for the module `emr`."
  value       = aws_iam_instance_profile.nodes.arn

  depends_on = [aws_iam_role_policy.nodes]
}

output "instance_profile_role_arn" {
  description = "Role of the nodes, for the module `lakeformation`."
  value       = aws_iam_role.instance_profile.arn
}

output "autoscaling_role_arn" {
  description = "Role of automatic scaling, for the module `emr`."
  value       = aws_iam_role.autoscaling.arn

  depends_on = [aws_iam_role_policy.autoscaling]
}

output "external_ids" {
  description = "External ids that the data lake role asks for: one of them is the setting `aws.external_id`."
  value       = local.external_ids
}
