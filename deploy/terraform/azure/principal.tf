# The service principal in which a sync acts: it may read and write this container, read the vault's secrets and use the
# cluster. Nothing else of the subscription.

resource "azuread_application" "lake" {
  display_name = var.name
  owners       = [local.me]
  tags         = [for key, value in local.tags : "${key}=${value}"]
}

resource "azuread_service_principal" "lake" {
  client_id = azuread_application.lake.client_id
  owners    = [local.me]
  tags      = [for key, value in local.tags : "${key}=${value}"]
}

resource "azuread_application_password" "lake" {
  application_id = azuread_application.lake.id
  display_name   = "eventlake"
  end_date       = var.secret_end_date
}

resource "azurerm_role_assignment" "lake" {
  scope                = azurerm_storage_container.lake.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = azuread_service_principal.lake.object_id
  principal_type       = "ServicePrincipal"
}
