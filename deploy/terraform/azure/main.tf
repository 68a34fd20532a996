# Names, tags and the resource group. What is made: storage.tf, principal.tf, vault.tf, metastore.tf, databricks.tf.

data "azurerm_client_config" "here" {}

locals {
  tenant = data.azurerm_client_config.here.tenant_id
  me     = data.azurerm_client_config.here.object_id
  group  = var.create_resource_group ? azurerm_resource_group.lake[0].name : local.group_name

  group_name = coalesce(var.resource_group, var.name)
  tags       = merge(var.tags, { vendor = "eventlake" })

  # Vaults and servers need names that nobody else in the world has, as the storage account has one already.
  unique = "${var.name}-${substr(sha256(var.storage_account), 0, 8)}"

  root = var.prefix == "" ? "" : "${var.prefix}/"
  lake = "abfss://${var.container}@${var.storage_account}.dfs.core.windows.net${var.prefix == "" ? "" : "/${var.prefix}"}"
}

resource "azurerm_resource_group" "lake" {
  count = var.create_resource_group ? 1 : 0

  name     = local.group_name
  location = var.location
  tags     = local.tags
}
