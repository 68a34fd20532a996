locals {
  # Who may read secrets: the principal itself, Databricks for its secret scope, and whoever runs eventlake.
  readers = merge(
    { principal = azuread_service_principal.lake.object_id },
    { for id in var.secret_readers : id => id },
    var.create_cluster ? { databricks = data.azuread_service_principal.databricks[0].object_id } : {},
  )
}

resource "azurerm_key_vault" "lake" {
  # checkov:skip=CKV_AZURE_189:Databricks reads secrets over the public endpoint; allowed_ip_ranges and allowed_subnet_ids close it
  # checkov:skip=CKV2_AZURE_32:private endpoints are for the owner of the network to decide
  name                = local.unique
  resource_group_name = local.group
  location            = var.location
  tenant_id           = local.tenant
  tags                = local.tags

  sku_name                   = "standard"
  rbac_authorization_enabled = true
  purge_protection_enabled   = true
  soft_delete_retention_days = 90

  network_acls {
    default_action             = local.is_closed ? "Deny" : "Allow"
    bypass                     = "AzureServices"
    ip_rules                   = var.allowed_ip_ranges
    virtual_network_subnet_ids = var.allowed_subnet_ids
  }
}

resource "azurerm_monitor_diagnostic_setting" "vault" {
  count = var.log_analytics_workspace_id == null ? 0 : 1

  name                       = "eventlake"
  target_resource_id         = azurerm_key_vault.lake.id
  log_analytics_workspace_id = var.log_analytics_workspace_id

  enabled_log {
    category = "AuditEvent"
  }
}

# Whoever runs Terraform writes the secrets.
resource "azurerm_role_assignment" "writer" {
  scope                = azurerm_key_vault.lake.id
  role_definition_name = "Key Vault Secrets Officer"
  principal_id         = local.me
}

resource "azurerm_role_assignment" "reader" {
  for_each = local.readers

  scope                = azurerm_key_vault.lake.id
  role_definition_name = "Key Vault Secrets User"
  principal_id         = each.value
}

resource "azurerm_key_vault_secret" "principal" {
  name            = "spsecret"
  key_vault_id    = azurerm_key_vault.lake.id
  value           = azuread_application_password.lake.value
  content_type    = "client secret of ${azuread_application.lake.client_id}"
  expiration_date = azuread_application_password.lake.end_date
  tags            = local.tags

  depends_on = [azurerm_role_assignment.writer]
}

resource "azurerm_key_vault_secret" "metastore" {
  # checkov:skip=CKV_AZURE_41:the password of the server is valid as long as the server has it
  for_each = var.create_metastore ? { user = var.metastore_user, password = random_password.metastore[0].result } : {}

  name         = "metastore-${each.key}"
  key_vault_id = azurerm_key_vault.lake.id
  value        = each.value
  content_type = "${each.key} of the metastore's server"
  tags         = local.tags

  depends_on = [azurerm_role_assignment.writer]
}
