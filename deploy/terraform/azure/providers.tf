# Providers are set up here, for the address of the Databricks workspace is known only once this module has made it. Who
# acts, and in which subscription, is found where all tools look for it: `az login` and ARM_SUBSCRIPTION_ID.

provider "azurerm" {
  # The keys of the storage account are not needed, so they can be switched off.
  storage_use_azuread = true

  features {
    storage {
      data_plane_available = false
    }
  }
}

provider "databricks" {
  host                        = one(azurerm_databricks_workspace.lake[*].workspace_url)
  azure_workspace_resource_id = one(azurerm_databricks_workspace.lake[*].id)
}
