output "grants" {
  description = "What was granted, as `role:database`."
  value       = keys(local.grants)

  depends_on = [
    aws_lakeformation_permissions.catalog,
    aws_lakeformation_permissions.databases,
    aws_lakeformation_permissions.tables,
  ]
}
