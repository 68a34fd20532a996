locals {
  client_secret = "keyvault://${azurerm_key_vault.lake.name}/${azurerm_key_vault_secret.principal.name}"

  volume = var.create_cluster ? join("/", ["/Volumes", local.volume_catalog, databricks_schema.lake[0].name, databricks_volume.packages[0].name]) : null

  runner = var.create_cluster ? [
    "kind = \"databricks\"",
    "host = \"${azurerm_databricks_workspace.lake[0].workspace_url}\"",
    "cluster_id = \"${databricks_cluster.lake[0].id}\"",
    "volume = \"${local.volume}\"",
    "python = \"${local.python}\"",
    "tenant_id = \"${local.tenant}\"",
    "client_id = \"${azuread_application.lake.client_id}\"",
    "client_secret = \"${local.client_secret}\"",
  ] : []
}

output "settings" {
  description = "The Azure part of `eventlake.toml`."
  value = join("\n", concat(
    var.create_cluster ? ["runner = { ${join(", ", local.runner)} }", ""] : [],
    [
      "[lake]",
      "root = \"${local.lake}\"",
      "",
      "[azure]",
      "tenant_id = \"${local.tenant}\"",
      "client_id = \"${azuread_application.lake.client_id}\"",
      "client_secret = \"${local.client_secret}\"",
      "",
    ],
    local.metastore_uri == null ? [] : [
      "[catalog]",
      "kind = \"hive\"",
      "uri = \"${local.metastore_uri}\"",
      "",
    ],
  ))
}

output "client_id" {
  description = "The service principal in which a sync acts: the setting `azure.client_id`."
  value       = azuread_application.lake.client_id
}

output "tenant_id" {
  description = "The setting `azure.tenant_id`."
  value       = local.tenant
}

output "client_secret" {
  description = "Where the principal's secret is: the setting `azure.client_secret`."
  value       = local.client_secret
}

output "storage_account" {
  description = "Name of the storage account."
  value       = azurerm_storage_account.lake.name
}

output "key_vault" {
  description = "Name of the vault with the secrets."
  value       = azurerm_key_vault.lake.name
}

output "workspace_url" {
  description = "Address of the Databricks workspace; null without a cluster."
  value       = one([for url in azurerm_databricks_workspace.lake[*].workspace_url : "https://${url}"])
}

output "cluster_id" {
  description = "The cluster that takes the runs; null without one."
  value       = one(databricks_cluster.lake[*].id)
}

output "metastore_host" {
  description = "The MySQL server of the metastore; null without one."
  value       = one(azurerm_mysql_flexible_server.metastore[*].fqdn)
}

output "volume" {
  description = "Where the package is put: the setting `runner.volume`; null without a cluster."
  value       = local.volume
}

output "metastore_uri" {
  description = "The thrift service of the metastore: the setting `catalog.uri`; null without one."
  value       = local.metastore_uri
}
